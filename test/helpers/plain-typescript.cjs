// Runs CommonJS in TypeScript as jest does: compiled by swc, with the paths of tsconfig.json. tsx takes twice as long to
// start, and gives each function a name of its own, which costs a process that looks at its memory a quarter of a kilobyte
// each. What is not CommonJS is left to others.
const { readFileSync } = require('node:fs');
const { Module } = require('node:module');
const { join } = require('node:path');
const { transformSync } = require('@swc/core');
const jest = require('../../jest.config.cjs');
const { paths } = require('../../tsconfig.json').compilerOptions;

const [, options] = jest.transform['\\.ts$'];
// An import() may be of a module that is not CommonJS.
const module_ = { ...options.module, ignoreDynamic: true };

require.extensions['.ts'] = (module, filename) => {
  const { code } = transformSync(readFileSync(filename, 'utf8'), { ...options, module: module_, filename });
  module._compile(code, filename);
};

const resolve = Module._resolveFilename;
Module._resolveFilename = function resolveFilename(request, ...rest) {
  const [path] = paths[request] ?? [];
  return resolve.call(this, path === undefined ? request : join(__dirname, '../..', path), ...rest);
};
