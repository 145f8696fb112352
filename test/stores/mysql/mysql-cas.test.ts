import { createPool as createCallbackPool } from 'mysql2';
import { createPool, type Pool, type PoolConnection } from 'mysql2/promise';
import { LockConfigError } from 'reenlock';
import { CasStore, MySqlCas, mysqlCasTable } from 'reenlock/mysql';
import type { MySqlConnection } from '../../../src/stores/mysql/pool.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { type MariadbServer, startMariadb } from '../../support/mysql/server.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { until } from '../../support/until.ts';

describe('MySqlCas', () => {
  let server: MariadbServer;
  let pool: Pool;
  const stage = new StoreStage();
  beforeAll(async () => {
    server = await startMariadb();
    const first = createPool(server.url);
    await first.query(`CREATE DATABASE elsewhere`);
    await first.query('CREATE TABLE work (id integer)');
    await first.end();
  }, 60_000);
  beforeEach(async () => {
    pool = createPool(server.url);
    for (const database of ['locks', 'elsewhere']) {
      await pool.query(`DROP TABLE IF EXISTS ${database}.reenlock_locks`);
      await pool.query(mysqlCasTable(`${database}.reenlock_locks`));
    }
    stage.store = new CasStore({ adapter: new MySqlCas({ pool }) });
  });
  afterEach(async () => {
    await stage.end();
    await pool.end();
  });
  afterAll(() => server.stop());

  async function rows<T>(sql: string, values: unknown[] = []): Promise<T[]> {
    const [found] = await pool.query(sql, values as never);
    return found as T[];
  }

  async function keys(database = 'locks'): Promise<string[]> {
    return (await rows<{ id: Buffer }>(`SELECT id FROM ${database}.reenlock_locks ORDER BY id`)).map(
      ({ id }) => `${id}`,
    );
  }

  /** A row that expires in so many seconds. */
  async function insert(id: string, seconds: number): Promise<void> {
    await rows(`INSERT INTO reenlock_locks VALUES (?, 'text', UTC_TIMESTAMP(3) + INTERVAL ? SECOND)`, [id, seconds]);
  }

  /** Runs `during` while another transaction has locked a row. */
  async function whileLocked<T>(id: string, during: () => Promise<T>): Promise<T> {
    const blocker = await pool.getConnection();
    await blocker.query('BEGIN');
    await blocker.query('SELECT * FROM reenlock_locks WHERE id = ? FOR UPDATE', [id]);
    try {
      return await during();
    } finally {
      await blocker.query('ROLLBACK');
      blocker.release();
    }
  }

  describe('The table of MySqlCas', () => {
    it('may be created by several processes at once, and again', async () => {
      const name = 'locks.created_at_once';
      const pools = Array.from({ length: 8 }, () => createPool(server.url));
      for (let round = 0; round < 5; round++) {
        await pool.query(`DROP TABLE IF EXISTS ${name}`);
        await Promise.all(pools.map((each) => each.query(mysqlCasTable(name))));
        expect(await new MySqlCas({ pool, table: name }).create('k', 'text', longMs)).toBe(true);
      }
      await pool.query(mysqlCasTable(name));
      expect(await rows(`SELECT 1 FROM ${name}`)).toHaveLength(1);
      await Promise.all(pools.map((each) => each.end()));
    });

    it('has a name that needs no quotes', () => {
      const long = 'a'.repeat(41);
      expect(mysqlCasTable(`${long}.${long}`)).toContain(`CREATE TABLE IF NOT EXISTS \`${long}\`.\`${long}\` (`);
      for (const table of ['a b', '', '1a', 'a.b.c', `${long}a`, 'a`', 'a;']) {
        expect(() => mysqlCasTable(table)).toThrow(LockConfigError);
      }
    });

    it('is named in the error while it is missing', async () => {
      await pool.query('DROP TABLE reenlock_locks');
      await expect(stage.deafProcess().line().ask()).rejects.toMatchObject({
        outcome: 'not-applied',
        message: expect.stringContaining('`mysqlCasTable()`'),
      });
    });

    it('needs a user with four rights, which the error names, and a session that may write', async () => {
      await pool.query('CREATE OR REPLACE USER weak');
      await pool.query('GRANT SELECT ON locks.reenlock_locks TO weak');
      const url = new URL(server.url);
      url.username = 'weak';
      const application = createPool({ uri: url.href, connectionLimit: 1 });
      stage.store = new CasStore({ adapter: new MySqlCas({ pool: application }) });
      await expect(stage.deafProcess().line().ask()).rejects.toMatchObject({
        outcome: 'not-applied',
        message: expect.stringContaining('grant SELECT, INSERT, UPDATE and DELETE'),
      });
      await pool.query('GRANT SELECT, INSERT, UPDATE, DELETE ON locks.reenlock_locks TO weak');
      await pool.query('SET GLOBAL tx_read_only = ON');
      try {
        const readOnly = createPool({ uri: url.href, connectionLimit: 1 });
        stage.store = new CasStore({ adapter: new MySqlCas({ pool: readOnly }) });
        await expect(stage.deafProcess().line().ask()).rejects.toMatchObject({
          outcome: 'not-applied',
          message: expect.stringContaining('Expected sessions that may write'),
        });
        await readOnly.end();
      } finally {
        await pool.query('SET GLOBAL tx_read_only = OFF');
      }
      await application.end();
    });

    it('needs a server that accepts the record of a lock in one packet, which the error names', async () => {
      const [before] = await rows<{ bytes: number }>('SELECT @@max_allowed_packet AS bytes');
      await pool.query('SET GLOBAL max_allowed_packet = 1024');
      const application = createPool(server.url);
      try {
        const adapter = new MySqlCas({ pool: application });
        await expect(adapter.create('k', 'x'.repeat(50_000), longMs)).rejects.toMatchObject({
          outcome: 'not-applied',
          message: expect.stringContaining('max_allowed_packet'),
        });
        expect((await adapter.read('k')).value).toBeUndefined();
      } finally {
        await application.end();
        await pool.query(`SET GLOBAL max_allowed_packet = ${before?.bytes}`);
      }
    });
  });

  describe('Expired rows of MySqlCas', () => {
    it('are removed by a new row, two at a time, the oldest first', async () => {
      for (const n of [1, 2, 3]) await insert(`expired${n}`, n - 10);
      await insert('kept', 3_600);
      const process = stage.deafProcess();
      await process.line(undefined, { id: 'a' }).hold();
      expect(await keys()).toEqual(['expired3', 'kept', 'reenlock:a']);
      await process.line(undefined, { id: 'b' }).hold();
      expect(await keys()).toEqual(['kept', 'reenlock:a', 'reenlock:b']);
    });

    it('do not make a new row wait for a transaction that has locked them', async () => {
      await insert('expired', -1);
      expect(await whileLocked('expired', () => new MySqlCas({ pool }).create('new', 'text', longMs))).toBe(true);
      expect(await keys()).toEqual(['expired', 'new']);
    });

    it('are not removed after one of them has come into use again at that moment', async () => {
      await insert('expired', -1);
      let replaced: Promise<boolean> | undefined;
      let isOver = false;
      const isDecided = async (): Promise<boolean> =>
        isOver || (await rows(`SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'`)).length > 0;
      const getConnection = async (): Promise<MySqlConnection> => {
        const connection: MySqlConnection = await pool.getConnection();
        const query = connection.query.bind(connection);
        connection.query = async (options) => {
          if ((options as { sql: string }).sql.startsWith('DELETE')) {
            replaced ??= new MySqlCas({ pool }).replace('expired', 'text', 'used again', longMs);
            void replaced.then(() => {
              isOver = true;
            });
            await until(isDecided);
          }
          return query(options);
        };
        return connection;
      };
      await new MySqlCas({ pool: { getConnection }, table: 'locks.reenlock_locks' }).create('new', 'text', longMs);
      expect(await replaced).toBe((await keys()).includes('expired'));
    });

    it('stay under their own key, and let no new row in', async () => {
      const adapter = new MySqlCas({ pool });
      await insert('k', -1);
      expect(await adapter.create('k', 'new', longMs)).toBe(false);
      expect((await adapter.read('k')).value).toBe('text');
      expect(await adapter.replace('k', 'text', 'new', 3_600_000)).toBe(true);
      const left = 'SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(3), expires_at) AS seconds FROM reenlock_locks';
      expect((await rows<{ seconds: number }>(left))[0]?.seconds).toBeGreaterThan(3_500);
    });
  });

  describe('What an application has left on the connections of its pool', () => {
    const leftovers: [string, (connection: PoolConnection) => Promise<unknown>][] = [
      [
        'a transaction that has written',
        async (connection) => {
          await connection.query('BEGIN');
          await connection.query('INSERT INTO locks.work VALUES (1)');
        },
      ],
      [
        'a transaction that has an old snapshot',
        (connection) => connection.query('START TRANSACTION WITH CONSISTENT SNAPSHOT'),
      ],
      ['a transaction that only reads', (connection) => connection.query('START TRANSACTION READ ONLY')],
      ['no autocommit', (connection) => connection.query('SET autocommit = 0')],
      [
        'no autocommit in serializable transactions',
        async (connection) => {
          await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE');
          await connection.query('SET autocommit = 0');
        },
      ],
      ['sessions that only read', (connection) => connection.query('SET SESSION TRANSACTION READ ONLY')],
      ['another database', (connection) => connection.query('USE elsewhere')],
      ['another character set', (connection) => connection.query('SET NAMES latin1')],
      ['another time zone', (connection) => connection.query(`SET time_zone = '+11:00'`)],
      ['transactions that each begin another one', (connection) => connection.query(`SET completion_type = 'CHAIN'`)],
      [
        'transactions that each end the connection',
        (connection) => connection.query(`SET completion_type = 'RELEASE'`),
      ],
      ['another SQL mode', (connection) => connection.query(`SET sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'`)],
    ];

    it.each(leftovers)('does not matter to a grant and a release: %s', async (_, what) => {
      const application = createPool({ uri: server.url, connectionLimit: 1 });
      const leave = async (): Promise<void> => {
        const connection = await application.getConnection();
        await what(connection);
        connection.release();
      };
      const elsewhere = new CasStore({ adapter: new MySqlCas({ pool }) });
      stage.store = new CasStore({ adapter: new MySqlCas({ pool: application }) });
      const id = `b'ü"\\cher`;
      const line = stage.deafProcess().line(undefined, { id });
      await leave();
      await line.hold();
      expect((await elsewhere.inspect(id)).holds).toMatchObject([{ holdId: line.holdId }]);
      expect(await keys('elsewhere')).toEqual([]);
      await leave();
      // Read first, then written: each meets what was left.
      expect((await stage.inspect(id)).holds).toHaveLength(1);
      await leave();
      expect(await line.release(longMs)).toMatchObject({ status: 'released' });
      expect((await elsewhere.inspect(id)).holds).toEqual([]);
      await leave();
      expect((await stage.inspect(id)).holds).toEqual([]);
      expect(await rows('SELECT * FROM work')).toEqual([]);
      await application.end();
    });

    it.each([
      ['is in a transaction', 'START TRANSACTION', 'without an open transaction'],
      ['has no autocommit', 'SET autocommit = 0', 'with autocommit, got one without it'],
    ])('The caller gets an error that says so if every connection of the pool %s', async (_, left, expected) => {
      const application = createPool({ uri: server.url, connectionLimit: 4 });
      const lent = await Promise.all(Array.from({ length: 4 }, () => application.getConnection()));
      for (const connection of lent) {
        await connection.query(left);
        connection.release();
      }
      const adapter = new MySqlCas({ pool: application });
      await expect(adapter.create('k', 'text', longMs)).rejects.toMatchObject({
        outcome: 'not-applied',
        message: expect.stringContaining(expected),
      });
      // Three were closed, so the next calls meet new ones.
      await adapter.create('k', 'text', longMs).catch(() => {}); // The last one may be met here.
      expect((await adapter.read('k')).value).toBe('text');
      expect(await keys()).toEqual(['k']);
      await application.end();
    });

    it('The caller gets an error that names the pool if all of its connections are in use', async () => {
      const application = createPool({ uri: server.url, connectionLimit: 1 });
      const greedy = await application.getConnection();
      await expect(new MySqlCas({ pool: application }).create('k', 'text', longMs)).rejects.toMatchObject({
        outcome: 'not-applied',
        message: expect.stringContaining('the pool of the lock store to lend a connection within 2000 ms'),
      });
      greedy.release();
      await application.end();
    });

    it.each([
      ['rows as arrays', { rowsAsArray: true }],
      ['rows by table', { nestTables: true }],
      ['numbers as texts', { supportBigNumbers: true, bigNumberStrings: true }],
      ['a cast of all values', { typeCast: (field: { string(): string | null }) => field.string() }],
      ['named placeholders', { namedPlaceholders: true }],
    ])('may be a pool with options for results of its own: %s', async (_, options) => {
      const own = createPool({ uri: server.url, ...(options as object) });
      const adapter = new MySqlCas({ pool: own });
      expect(await adapter.create('k', 'ü', longMs)).toBe(true);
      const { value, nowUs } = await adapter.read('k');
      expect(value).toBe('ü');
      expect(Math.abs(nowUs / 1_000 - Date.now())).toBeLessThan(60_000);
      await own.end();
    });
  });

  describe('Writes of MySqlCas that meet others', () => {
    it.each(['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'])(
      'At once, under %s, one succeeds and the others learn that it was faster',
      async (isolation) => {
        const adapters = await Promise.all(
          Array.from({ length: 4 }, async () => {
            const own = createPool({ uri: server.url, connectionLimit: 1 });
            await own.query(`SET SESSION TRANSACTION ISOLATION LEVEL ${isolation}`);
            return { own, adapter: new MySqlCas({ pool: own }) };
          }),
        );
        for (let round = 0; round < 20; round++) {
          const key = `k${round}`;
          const created = adapters.map(({ adapter }, n) => adapter.create(key, `one ${n}`, longMs));
          expect((await Promise.all(created)).filter(Boolean)).toHaveLength(1);
          const { value } = await adapters[0]!.adapter.read(key);
          const replaced = adapters.map(({ adapter }, n) => adapter.replace(key, value!, `two ${n}`, longMs));
          expect((await Promise.all(replaced)).filter(Boolean)).toHaveLength(1);
          const next = (await adapters[1]!.adapter.read(key)).value!;
          const removed = adapters.map(({ adapter }) => adapter.remove(key, next));
          expect((await Promise.all(removed)).filter(Boolean)).toHaveLength(1);
        }
        await Promise.all(adapters.map(({ own }) => own.end()));
      },
    );

    it.each([
      [1213, 'ER_LOCK_DEADLOCK'],
      [1205, 'ER_LOCK_WAIT_TIMEOUT'],
      [1020, 'ER_CHECKREAD'],
      [1062, 'ER_DUP_ENTRY'],
    ])('Error %d (%s) of the server means that another transaction was faster', async (errno, code) => {
      const { adapter, released } = failing({ errno, code, sqlState: '40001' });
      expect(await adapter.replace('k', 'a', 'b', longMs)).toBe(false);
      expect(released()).toBe('kept');
    });

    it('A lock that the server waited for in vain leaves the row as it was', async () => {
      const impatient = createPool({ uri: server.url, connectionLimit: 1 });
      await impatient.query('SET innodb_lock_wait_timeout = 1');
      const adapter = new MySqlCas({ pool: impatient });
      await adapter.create('k', 'one', longMs);
      expect(await whileLocked('k', () => adapter.replace('k', 'one', 'two', longMs))).toBe(false);
      expect((await adapter.read('k')).value).toBe('one');
      await impatient.end();
    });

    it.each([
      [{ errno: 1142, code: 'ER_TABLEACCESS_DENIED_ERROR', sqlState: '42000' }, 'not-applied'],
      [{ errno: 1290, code: 'ER_OPTION_PREVENTS_STATEMENT', sqlState: 'HY000' }, 'not-applied'],
      [{ errno: 1317, code: 'ER_QUERY_INTERRUPTED', sqlState: '70100' }, 'not-applied'],
      [{ errno: 1180, code: 'ER_ERROR_DURING_COMMIT', sqlState: 'HY000' }, 'unknown'],
      [{ errno: 1053, code: 'ER_SERVER_SHUTDOWN', sqlState: '08S01' }, 'unknown'],
      [{ errno: 1927, code: 'ER_CONNECTION_KILLED', sqlState: '70100' }, 'unknown'],
      [{ code: 'PROTOCOL_CONNECTION_LOST', fatal: true }, 'unknown'],
      [{ errno: -104, code: 'ECONNRESET', fatal: true }, 'unknown'],
    ])('The outcome of a write that fails with %j is %s, and the connection is closed', async (error, outcome) => {
      const { adapter, released } = failing(error);
      await expect(adapter.create('k', 'v', 1)).rejects.toMatchObject({ outcome, cause: error });
      expect(released()).toBe('closed');
    });

    /** An adapter each of whose writes fails with this, and what became of its connection. */
    function failing(error: object) {
      let released: 'kept' | 'closed' | undefined;
      const connection = {
        query: ({ sql }: { sql: string }): Promise<[unknown, unknown]> =>
          sql.startsWith('ROLLBACK') ? Promise.resolve([{ serverStatus: 2 }, undefined]) : Promise.reject(error),
        release: () => {
          released = 'kept';
        },
        destroy: () => {
          released = 'closed';
        },
        on() {},
        off() {},
      };
      const adapter = new MySqlCas({ pool: { getConnection: async () => connection }, table: 'locks.reenlock_locks' });
      return { adapter, released: () => released };
    }
  });

  describe('A network that fails', () => {
    let proxy: TcpProxy;
    let own: Pool;
    beforeEach(async () => {
      proxy = await TcpProxy.start(server.port, 'any');
      own = createPool({ uri: server.url.replace(`:${server.port}`, `:${proxy.port}`), connectionLimit: 2 });
      stage.store = new CasStore({ adapter: new MySqlCas({ pool: own }) });
    });
    afterEach(async () => {
      await stage.end();
      await own.end();
      await proxy.stop();
    });

    it('makes a call fail in time when nothing goes through, and the next calls succeed when it is whole again', async () => {
      const line = stage.deafProcess().line();
      const { fence } = await line.hold();
      proxy.halfOpen();
      await expect(line.renew(fence)).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
      proxy.heal();
      proxy.cut();
      await line.renew(fence).catch((error) => expect(error).toMatchObject({ code: 'ERR_LOCK_STORE' }));
      expect((await line.renew(fence)).status).toBe('renewed');
    });

    it('ends no process when it cuts connections that are idle, lent and opening', async () => {
      const adapter = new MySqlCas({ pool: own });
      for (let round = 0; round < 20; round++) {
        const calls = [1, 2, 3, 4].map((n) => adapter.create(`${round}.${n}`, 'text', longMs));
        if (round % 2 === 0) proxy.cut();
        for (const { status, reason } of (await Promise.allSettled(calls)) as PromiseRejectedResult[]) {
          if (status === 'rejected') expect(reason).toMatchObject({ code: 'ERR_LOCK_STORE' });
        }
      }
      expect((await adapter.read('none')).value).toBeUndefined();
    });
  });

  describe('A lock and its queue', () => {
    it('outlive a restart of the server', async () => {
      const process = stage.deafProcess();
      const holder = process.line();
      const { fence } = await holder.hold();
      const waiter = await process.line().wait();
      await server.restart();
      // Connections from before the restart may be lent once more.
      for (let n = 0; n < 3; n++) await stage.inspect().catch(() => {});
      expect(await stage.order()).toEqual({ holds: [holder.holdId], waiters: [waiter.holdId] });
      expect((await holder.renew(fence)).status).toBe('renewed');
    });
  });

  describe('The options of MySqlCas', () => {
    it('may be a pool of mysql2 without promises', async () => {
      const own = createCallbackPool(server.url);
      expect(await new MySqlCas({ pool: own }).create('k', 'text', longMs)).toBe(true);
      await own.promise().end();
    });

    it('name a database, in the pool or in the table', async () => {
      const { port } = server;
      const own = createPool({ host: '127.0.0.1', port, user: 'root' });
      expect(() => new MySqlCas({ pool: own })).toThrow('Expected `pool` to have a database in its options');
      expect(await new MySqlCas({ pool: own, table: 'elsewhere.reenlock_locks' }).create('k', 'text', longMs)).toBe(
        true,
      );
      expect(await keys('elsewhere')).toEqual(['k']);
      await own.end();
    });

    it.each([
      [undefined, 'Expected `pool` to be a pool of `createPool` of mysql2'],
      [{ pool: {} }, 'Expected `pool` to be a pool of `createPool` of mysql2'],
      [{ pool: { getConnection() {} }, table: 'Locks' }, 'Expected `table` to be'],
      [{ pool: { getConnection() {} }, table: 'a; DROP TABLE b' }, 'Expected `table` to be'],
    ])('are refused: %j', (options, message) => {
      const build = () => new MySqlCas(options as never);
      expect(build).toThrow(LockConfigError);
      expect(build).toThrow(message);
    });
  });
});
