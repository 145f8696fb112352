/** The order of the pages, by folder of `docs/`. A page that is not named here comes after those of its folder that are. */
export const outline = [
  ['Start', 'start', ['quick-start', 'questions', 'production', 'roll-out']],
  ['Concepts', 'concepts', ['owner', 'holds', 'waiting', 'release', 'promises']],
  [
    'Guides',
    'guides',
    [
      'jobs',
      'across-services',
      'several-keys',
      'readers-and-writers',
      'permits',
      'leases',
      'detached-holds',
      'refusals',
      'shutdown',
    ],
  ],
  ['Stores and clients', 'stores', ['choose', 'redis', 'postgres', 'mysql', 'quorum', 'cas', 'custom']],
  ['Frameworks', 'frameworks', ['choose', 'express', 'koa', 'nest']],
  ['Observe', 'observe', ['board', 'inspect', 'metrics', 'traces', 'logs', 'health']],
  ['Test', 'test', ['testing']],
  ['Migrate', 'migrate', ['redlock', 'redis-semaphore', 'redisson', 'async-mutex']],
  ['Recipes', 'recipes', []],
  ['Reference', 'reference', ['options', 'errors', 'events', 'limits']],
];
