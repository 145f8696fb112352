const { matrixOnly } = require('./test/support/jest/matrix-only.json');

/** The options of swc for modules that `jsc` says how to read. */
const swc = (jsc = {}) => [
  '@swc/jest',
  { swcrc: false, jsc: { target: 'es2022', ...jsc }, module: { type: 'commonjs' } },
];
const parser = { syntax: 'typescript', decorators: true };

const isMatrix = process.env.MATRIX === 'all';
const isWhole = isMatrix || process.env.FAULTS === 'long';

/** What each project has. */
const common = {
  testEnvironment: '<rootDir>/test/support/jest/environment.cjs',
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  modulePathIgnorePatterns: [
    '<rootDir>/dist/',
    '<rootDir>/bench/',
    '<rootDir>/website/',
    '<rootDir>/test/package/consumers/',
  ],
  transform: {
    '/test/nest/.+\\.ts$': swc({ parser, transform: { legacyDecorator: true, decoratorMetadata: true } }),
    '\\.ts$': swc({ parser, transform: { decoratorVersion: '2022-03' } }),
    // Nest is published as modules alone, which jest can't require.
    '/@nestjs/.+\\.js$': swc(),
  },
  transformIgnorePatterns: ['/node_modules/(?!@nestjs/)'],
  moduleNameMapper: {
    '^reenlock$': '<rootDir>/src/core/index.ts',
    '^reenlock/redis$': '<rootDir>/src/stores/redis.ts',
    '^reenlock/postgres$': '<rootDir>/src/stores/postgres.ts',
    '^reenlock/mysql$': '<rootDir>/src/stores/mysql.ts',
    '^reenlock/node$': '<rootDir>/src/node/index.ts',
    '^reenlock/express$': '<rootDir>/src/express/index.ts',
    '^reenlock/koa$': '<rootDir>/src/koa/index.ts',
    '^reenlock/hono$': '<rootDir>/src/hono/index.ts',
    '^reenlock/fastify$': '<rootDir>/src/fastify/index.ts',
    '^reenlock/nest$': '<rootDir>/src/nest/index.ts',
    '^reenlock/testing$': '<rootDir>/src/testing/index.ts',
    '^reenlock/testing/contract$': '<rootDir>/src/testing/contract/index.ts',
    '^reenlock/prometheus$': '<rootDir>/src/prometheus/index.ts',
    '^reenlock/otel$': '<rootDir>/src/otel/index.ts',
  },
  globalSetup: '<rootDir>/test/support/jest/global-setup.ts',
  testPathIgnorePatterns: ['/node_modules/', ...(isWhole ? [] : matrixOnly)],
  setupFilesAfterEnv: ['<rootDir>/test/support/jest/timeouts.cjs', '<rootDir>/test/support/jest/leaks.ts'],
};

/** The tests of Nest once more, and a sample of those of HTTP, on an older major version of Nest. */
const olderNest = {
  ...common,
  displayName: 'Nest 11',
  globals: { onlyNest: true },
  testMatch: [
    'nest/nest',
    'nest/timeouts',
    'http/guards/guards',
    'http/guards/refusals',
    'http/abort/abort',
    'http/release/streams',
  ].map((path) => `<rootDir>/test/${path}.test.ts`),
  moduleNameMapper: {
    ...common.moduleNameMapper,
    '^@nestjs/(.+)$': '<rootDir>/test/nest/nest11/node_modules/@nestjs/$1',
  },
};

/** @type {import('jest').Config} */
module.exports = {
  ...common,
  ...(isMatrix && { projects: [common, olderNest] }),
  reporters: ['default', '<rootDir>/test/support/jest/first-failures.cjs'],
  testSequencer: '<rootDir>/test/support/jest/longest-first.cjs',
  testTimeout: 15_000,
  // On two cores: suites that wait for servers, processes and leases leave one to others half of their time.
  maxWorkers: 3,
};
