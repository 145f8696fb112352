import { EarlyGrants } from '../../../src/core/wait/offers.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';

const grant = (holdId: string) => ({ holdId, fence: 1, endMs: 0, isClaim: true });

it('A grant that no waiter takes is kept no longer than a claim, also behind one that was sent again', () => {
  const clock = new ManualClock();
  const early = new EarlyGrants(1_000);
  early.keep(grant('again'), clock.now());
  early.keep(grant('old'), clock.now());
  clock.skip(900);
  early.keep(grant('again'), clock.now());
  clock.skip(200);
  early.keep(grant('new'), clock.now());
  expect(early.take('old')).toBeUndefined();
  expect(early.take('again')?.grant).toEqual(grant('again'));
  expect(early.take('new')?.grant).toEqual(grant('new'));
  expect(early.take('new')).toBeUndefined();
});
