// The rooms of `src` and the arrows between them. `npm run lint` checks them, type imports included;
// `npm run lint:graph` draws them. CONTRIBUTING.md says what each room is for.

const words = ['core/base', 'core/model'];
const request = ['core', 'core/model', 'http', 'board'];

/**
 * Each room, floor by floor, and the rooms that it may import. `core` alone is `core/index.ts`, the public names of the
 * core; `stores` alone has the files in `stores` itself, those of the stores.
 */
const rooms = {
  // Floor 1: the core, complete by itself with its store in memory. `lease` and `wait` do not know each other.
  'core/base': [],
  'core/model': ['core/base'],
  'core/machine': ['core/model'],
  'core/memory': [...words, 'core/machine'],
  'core/client': words,
  'core/lease': [...words, 'core/client'],
  'core/wait': [...words, 'core/client'],
  'core/deadlock': [...words, 'core/client', 'core/wait'],
  'core/runtime': [...words, 'core/memory', 'core/client', 'core/lease', 'core/wait', 'core/deadlock'],
  'core/scope': [...words, 'core/lease', 'core/wait', 'core/runtime'],
  'core/lock': [...words, 'core/client', 'core/lease', 'core/wait', 'core/runtime', 'core/scope'],
  core: ['core/model', 'core/memory', 'core/runtime', 'core/scope', 'core/lock'],
  // Floor 2: the life of a request, where locks are kept, metrics, the test kit.
  http: [...words, 'core/runtime', 'core/scope', 'core/lock'],
  'stores/redis': words,
  'stores/pool': words,
  'stores/postgres': [...words, 'stores/pool'],
  'stores/retrying': words,
  'stores/quorum': [...words, 'stores/retrying'],
  'stores/mysql': [...words, 'stores/cas', 'stores/pool'],
  'stores/cas': [...words, 'core/machine', 'stores/postgres', 'stores/redis'],
  stores: [
    'core/model',
    'stores/mysql',
    'stores/redis',
    'stores/postgres',
    'stores/quorum',
    'stores/retrying',
    'stores/cas',
  ],
  metrics: ['core', ...words],
  testing: ['core', ...words, 'core/memory', 'core/runtime', 'core/scope', 'core/lock'],
  // Floor 3: what operators look at.
  board: [...words, 'core/runtime', 'http'],
  prometheus: ['core', 'core/model', 'metrics'],
  otel: ['core', ...words, 'metrics'],
  // Floor 4: the frameworks, which do not know each other, and the command.
  node: request,
  express: request,
  koa: request,
  fastify: request,
  hono: request,
  nest: request,
  cli: ['core', 'core/base', 'stores', 'board'],
};

/** What other rooms may import of a room. A room that is not named here has no inside. */
const faces = {
  'core/memory': ['memory-store'],
  'core/lease': ['grant', 'grant-registry'],
  'core/wait': ['local-queue', 'observer', 'pending-acquires', 'task'],
  'core/deadlock': ['deadlock'],
  'core/runtime': ['default-locks', 'inspect', 'locks', 'runtime'],
  'core/lock': ['acquire', 'batch', 'batch-hold', 'hold', 'lock', 'locked'],
  'stores/cas': ['adapter', 'cas-store', 'postgres-cas', 'redis-cas'],
  'stores/mysql': ['mysql-cas', 'pool'],
  'stores/postgres': ['postgres-store', 'pool', 'statements'],
  'stores/quorum': ['quorum-store'],
  'stores/retrying': ['retrying-store'],
  'stores/redis': [
    ...['redis-store', 'connection-pool', 'errors', 'server-info'],
    ...['drivers/driver', 'drivers/driver-of', 'drivers/hide-command'],
  ],
  board: ['board-reply', 'connect-board', 'lock-board', 'viewer'],
};

const frameworks = '^(express|koa|@koa/router|fastify|fastify-plugin|hono|@hono/node-server|@nestjs/.*)$';
/** `reenlock`, `reenlock/redis` and `reenlock/postgres` name what users may import, wherever it lives. */
const publicFace = '^src/(core|stores)/[^/]+\\.ts$';
const oneOf = (patterns) => `(${patterns.join('|')})`;
const inRoom = (name) => (name === 'core' || name === 'stores' ? `^src/${name}/[^/]+\\.ts$` : `^src/${name}/`);

const arrows = Object.entries(rooms).map(([name, known]) => ({
  name: `arrows-of-${name.replace('/', '-')}`,
  comment: `${name} imports ${known.length === 0 ? 'no other room' : known.join(', ')}.`,
  severity: 'error',
  from: { path: inRoom(name) },
  to: { path: '^src/', pathNot: oneOf([name, ...known].map(inRoom)) },
}));

const doors = Object.entries(faces).map(([name, files]) => ({
  name: `face-of-${name.replace('/', '-')}`,
  comment: `Other rooms import of ${name}: ${files.join(', ')}.`,
  severity: 'error',
  from: { path: '^src/', pathNot: oneOf([inRoom(name), publicFace]) },
  to: { path: inRoom(name), pathNot: `^src/${name}/${oneOf(files)}\\.ts$` },
}));

module.exports = {
  forbidden: [
    {
      name: 'no-circle',
      comment: 'Two files that import each other are one idea, or one of them is in the wrong room.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'a-room-has-arrows',
      comment: 'This file lies in no room that `rooms` names.',
      severity: 'error',
      from: { path: '^src/', pathNot: oneOf(Object.keys(rooms).map(inRoom)) },
      to: {},
    },
    ...arrows,
    ...doors,
    {
      name: 'frameworks-stay-in-their-rooms',
      comment: 'The core, the board and `http` serve every framework: only the room of a framework imports it.',
      severity: 'error',
      from: { path: '^src/(core|stores|http|board)/' },
      to: {
        path: `(${frameworks})|node_modules/(@types/)?(express|koa|fastify|hono|@nestjs)`,
        dependencyTypesNot: ['local'],
      },
    },
    {
      name: 'only-drivers-know-a-client',
      comment: 'A client library is imported by the driver of the store that uses it.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/stores/(redis/drivers|postgres)/' },
      to: { path: '^(ioredis|iovalkey|redis|pg)$|node_modules/(@types/)?(ioredis|iovalkey|redis|@redis|pg)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    parser: 'swc',
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
    reporterOptions: {
      dot: { collapsePattern: '^src/(stores/[^/]+|core/[^/]+|[^/]+)/', theme: { graph: { rankdir: 'BT' } } },
    },
  },
};
