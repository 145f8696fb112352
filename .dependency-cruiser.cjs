// The rooms of src/core and the arrows between them. `npm run lint` checks them, type imports included;
// `npm run lint:graph` draws them. CONTRIBUTING.md says what each room is for.

/** From the bottom to the top: a room imports rooms below it. `lease` and `wait` do not know each other. */
const rooms = ['base', 'model', 'client', 'lease', 'wait', 'runtime', 'scope', 'lock', 'http'];

/** What other rooms may import of a room. A room that is not named here has no inside. */
const faces = {
  lease: ['grant', 'grant-registry'],
  wait: ['pending-acquires', 'task'],
  runtime: ['inspect', 'locks', 'runtime'],
  lock: ['acquire', 'batch', 'lock', 'locked'],
};

/** What other folders may import of a store: the store itself, and what `cas` shares with Redis and PostgreSQL. */
const storeFaces = {
  memory: ['memory-store'],
  cas: ['cas-store', 'postgres-cas', 'redis-cas'],
  postgres: ['postgres-store', 'pool', 'statements'],
  quorum: ['quorum-store'],
  redis: ['redis-store', 'drivers/driver', 'drivers/driver-of', 'connection-pool', 'errors', 'server-info'],
};

/** The stores that use others. */
const sharedStores = {
  memory: ['machine'],
  cas: ['machine', 'postgres', 'redis'],
};

const frameworks = '^(express|koa|@koa/router|fastify|fastify-plugin|hono|@hono/node-server|@nestjs/.*)$';
/** `reenlock` and `reenlock/redis` name what users may import, wherever it lives. */
const publicFace = '^src/core/[^/]+\\.ts$';
const room = (name) => `^src/core/${name}/`;
const oneOf = (names) => `(${names.join('|')})`;

const arrows = rooms.map((name, index) => {
  const above = rooms.slice(index + 1);
  const beside = name === 'wait' ? ['lease'] : [];
  return {
    name: `arrows-of-${name}`,
    comment: `A room imports the rooms below it only: ${rooms.join(' < ')}.`,
    severity: 'error',
    from: { path: room(name) },
    to: {
      path: `^src/(core/${oneOf([...above, ...beside, 'stores'])}/|core/[^/]+\\.ts$|(?!core/))`,
      pathNot: stores(name),
    },
  };
});

/** A `Locks` without a store has one in memory. */
function stores(name) {
  return name === 'runtime' ? '^src/core/stores/memory/memory-store\\.ts$' : '^$';
}

const doors = Object.entries(faces).map(([name, files]) => ({
  name: `face-of-${name}`,
  comment: `Other rooms import of ${name}: ${files.join(', ')}.`,
  severity: 'error',
  from: { path: '^src/', pathNot: `(${room(name)}|${publicFace})` },
  to: { path: room(name), pathNot: `^src/core/${name}/${oneOf(files)}\\.ts$` },
}));

const storeDoors = Object.entries(storeFaces).map(([name, files]) => ({
  name: `face-of-${name}`,
  comment: `Other rooms import of the ${name} store: ${files.join(', ')}.`,
  severity: 'error',
  from: { path: '^src/', pathNot: `(${room(`stores/${name}`)}|${publicFace})` },
  to: { path: room(`stores/${name}`), pathNot: `^src/core/stores/${name}/${oneOf(files)}\\.ts$` },
}));

const storeArrows = [
  arrowsOf('stores', { path: room('stores/([^/]+)'), pathNot: room(`stores/${oneOf(Object.keys(sharedStores))}`) }, [
    '$1',
  ]),
  ...Object.entries(sharedStores).map(([name, shared]) =>
    arrowsOf(name, { path: room(`stores/${name}`) }, [name, ...shared]),
  ),
];

function arrowsOf(name, from, known) {
  return {
    name: `arrows-of-${name}`,
    comment: 'A store imports base, model and the stores that it shares code with.',
    severity: 'error',
    from,
    to: { path: '^src/', pathNot: `^src/core/(base|model|stores/${oneOf(known)})/` },
  };
}

module.exports = {
  forbidden: [
    {
      name: 'no-circle',
      comment: 'Two files that import each other are one idea, or one of them is in the wrong room.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    ...arrows,
    ...doors,
    ...storeArrows,
    ...storeDoors,
    {
      name: 'core-knows-no-framework',
      comment: 'The core serves every framework: only the folder of a framework imports it.',
      severity: 'error',
      from: { path: '^src/core/' },
      to: {
        path: `(${frameworks})|node_modules/(@types/)?(express|koa|fastify|hono|@nestjs)`,
        dependencyTypesNot: ['local'],
      },
    },
    {
      name: 'adapters-do-not-know-each-other',
      comment:
        'A framework’s folder imports core/http and the public names of the core; never a store or another framework’s folder. So do `prometheus` and `otel`, which share `metrics`.',
      severity: 'error',
      from: { path: '^src/(?!core/|testing/|cli/)([^/]+)/' },
      to: { path: '^src/', pathNot: '^src/($1/|metrics/|core/(http|base|model)/|core/index\\.ts$)' },
    },
    {
      name: 'arrows-of-cli',
      comment: 'The command is an application of the public names, and of the board.',
      severity: 'error',
      from: { path: '^src/cli/' },
      to: { path: '^src/', pathNot: '^src/(cli/|core/(http/board|base)/|core/[^/]+\\.ts$)' },
    },
    {
      name: 'only-drivers-know-a-client',
      comment: 'A client library is imported by the driver of the store that uses it.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/core/stores/(redis/drivers|postgres)/' },
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
      dot: { collapsePattern: '^src/(core/stores/[^/]+|core/[^/]+|[^/]+)/', theme: { graph: { rankdir: 'BT' } } },
    },
  },
};
