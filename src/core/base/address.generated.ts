// Generated from package.json by `node scripts/build-address.mjs`. Do not edit.
export const pagesAt = 'node_modules/reenlock/';
