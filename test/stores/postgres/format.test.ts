import type { InspectReply } from '../../../src/core/model/store.ts';
import { readMessage } from '../../../src/stores/postgres/replies.ts';
import { tables, usePostgres } from '../../support/postgres/stage.ts';
import { expectGoesOn, expectKnownMessages } from '../../support/stores/stored-lock.ts';
import fixture from '../fixtures/postgres-format-1.json';

const stored = Object.entries(fixture.inspect) as unknown as [string, InspectReply][];

describe('What is stored in PostgreSQL as format 1', () => {
  const stage = usePostgres();

  beforeAll(async () => {
    const pool = stage.connect();
    await pool.query('CREATE TABLE public.now (us bigint)');
    await pool.query('INSERT INTO public.now VALUES ($1)', [fixture.nowUs]);
    await pool.query(
      'CREATE OR REPLACE FUNCTION reenlock.now_us() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT us FROM public.now $$',
    );
    await stage.end();
  });

  beforeEach(async () => {
    for (const table of tables) {
      const rows: readonly object[] = fixture.rows[table];
      // Without the columns that are generated, or came later: those have defaults.
      const columns = Object.keys(rows[0] ?? {}).join(', ');
      if (rows.length === 0) continue;
      await stage.pool.query(
        `INSERT INTO reenlock.${table} (${columns}) OVERRIDING SYSTEM VALUE
        SELECT ${columns} FROM json_populate_recordset(NULL::reenlock.${table}, $1)`,
        [JSON.stringify(rows)],
      );
    }
  });

  it.each(stored)(
    'A lock with a %s is read and listed: its holds are renewed and released, and its waiters get the key in their order',
    async (id, expected) => {
      const listed = (await stage.store.list?.({ idPrefix: id, limit: 10 }))?.locks ?? [];
      const isUsed = expected.holds.length + expected.waiters.length > 0;
      expect(listed).toEqual(isUsed ? [{ id, ...expected }] : []);
      await expectGoesOn(stage.store, id, expected);
    },
  );

  it('A release that was remembered gets its reply again', async () => {
    const [hold] = stored.find(([id]) => id === 'detached')?.[1].holds ?? [];
    const line = stage.deafProcess().line('owner-1', { id: 'detached', holdId: 'hold-1' });
    expect(await line.ask()).toMatchObject({ status: 'cancelled' });
    expect((await line.release(1_000)).status).toBe('released');
    expect((await stage.inspect('detached')).holds).toMatchObject([{ holdId: hold?.holdId }]);
  });

  it('An operation that the functions do not know is refused, and changes nothing', async () => {
    const call = stage.pool.query(`SELECT reenlock.run(1, 'writer', '[{"op":"later"}]')`);
    await expect(call).rejects.toMatchObject({ code: 'RL001' });
    expect((await stage.inspect('writer')).holds).toHaveLength(1);
  });

  it('Messages are read as they were, and a kind that is not known yet is ignored', () => {
    expectKnownMessages(readMessage);
  });
});
