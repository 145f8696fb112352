// Runs CommonJS in TypeScript as jest does: compiled by swc, once for all processes, with the paths of tsconfig.json. tsx
// takes three times as long to start, and gives each function a name of its own, which costs a process that looks at its
// memory a quarter of a kilobyte each. What is not CommonJS is left to others.
const { createHash } = require('node:crypto');
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
const { Module } = require('node:module');
const { join } = require('node:path');
const jest = require('../../../jest.config.cjs');
const { version } = require('@swc/core/package.json');
const { paths } = require('../../../tsconfig.json').compilerOptions;

const root = join(__dirname, '../../..');
// The whole matrix has several projects.
const { transform } = jest.projects?.[0] ?? jest;
const [, jestOptions] = transform['\\.ts$'];
// An import() may be of a module that is not CommonJS.
const options = { ...jestOptions, module: { ...jestOptions.module, ignoreDynamic: true } };
const cache = join(root, 'node_modules/.cache/plain-typescript');
const seed = JSON.stringify({ version, options });

function compiled(filename) {
  const source = readFileSync(filename, 'utf8');
  const file = join(cache, createHash('sha1').update(seed).update(filename).update(source).digest('hex'));
  try {
    return readFileSync(file, 'utf8');
  } catch {
    // Not compiled yet.
  }
  // Here, since a process that compiles nothing is spared the loading of it.
  const { code } = require('@swc/core').transformSync(source, { ...options, filename });
  mkdirSync(cache, { recursive: true });
  // Others may do the same at this moment.
  writeFileSync(`${file}.${process.pid}`, code);
  renameSync(`${file}.${process.pid}`, file);
  return code;
}

require.extensions['.ts'] = (module, filename) => module._compile(compiled(filename), filename);

const resolve = Module._resolveFilename;
Module._resolveFilename = function resolveFilename(request, ...rest) {
  const [path] = paths[request] ?? [];
  return resolve.call(this, path === undefined ? request : join(root, path), ...rest);
};
