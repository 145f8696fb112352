import { CasStore } from 'reenlock/redis';
import type { InspectReply } from '../../../src/core/model/store.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { MapCas } from '../../support/stores/map-cas.ts';
import { expectGoesOn, expectLaterFormat } from '../../support/stores/stored-lock.ts';
import fixtures from '../fixtures/cas-format-1.json';

/** What a process left under the key of a lock at a time. */
interface Stored {
  readonly nowMs: number;
  readonly text: string;
  readonly inspect: InspectReply;
}

const stored = Object.entries(fixtures as unknown as Record<string, Stored>);
const id = 'order:42';
const record = `reenlock:${id}`;

describe('What a CasStore has stored as format 1', () => {
  const stage = new StoreStage();
  let adapter: MapCas;
  beforeEach(() => {
    adapter = new MapCas();
    stage.store = new CasStore({ adapter }, new ManualClock());
  });

  function restore({ nowMs, text }: Stored): void {
    adapter.nowMs = nowMs;
    adapter.texts.set(record, text);
  }

  it.each(stored)(
    'A lock is read as %s: its holds are renewed and released, and its waiters get the key in their order',
    async (_, each) => {
      restore(each);
      await expectGoesOn(stage.store, id, each.inspect);
    },
  );

  it('What is written names no format, so that versions that know none read it', async () => {
    await stage.deafProcess().line(undefined, { id }).hold();
    expect(JSON.parse(adapter.texts.get(record) as string)).not.toHaveProperty('format');
  });

  it('A record of a later format is an error in every call that names it, and stays as it is', async () => {
    const [[, { text }] = ['', { text: '' }]] = stored;
    const later = `{"format":2,${text.slice(1)}`;
    adapter.texts.set(record, later);
    const line = await expectLaterFormat(stage, id);
    expect(adapter.texts.get(record)).toBe(later);
    adapter.texts.delete(record);
    expect((await line.ask()).status).toBe('granted');
  });
});
