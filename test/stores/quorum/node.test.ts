import { QuorumStore } from 'reenlock/redis';
import type { Clock } from '../../../src/core/base/clock.ts';
import type { Link } from '../../../src/core/base/link.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { FakeStore } from '../../support/stores/fake-store.ts';
import { outcomeOf } from '../../support/stores/set-up.ts';

/** A node whose client knows whether it has a connection. While it is cut, calls wait in the client. */
class LinkedStore extends FakeStore {
  readonly link: Link;
  #opened: Gate | undefined;

  constructor(clock: Clock) {
    super(clock);
    const isUp = (): boolean => this.#opened === undefined;
    this.link = {
      get isUp() {
        return isUp();
      },
      isEnded: false,
      error: new Error('ECONNRESET'),
      onceUp: () => () => undefined,
    };
  }

  cut(): void {
    const opened = gate();
    this.#opened = opened;
    this.always('acquire', { kind: 'gate', opened });
  }

  connect(): void {
    this.heal();
    this.#opened?.open();
    this.#opened = undefined;
  }
}

describe('A node of a quorum that has lost its connection', () => {
  const stage = new StoreStage();
  let clock: ManualClock;
  let nodes: LinkedStore[];
  beforeEach(async () => {
    clock = new ManualClock();
    nodes = Array.from({ length: 3 }, () => new LinkedStore(clock));
    stage.store = new QuorumStore({ stores: nodes, nodeTimeoutMs: 250 }, clock);
    const line = stage.deafProcess().line();
    await line.hold();
    await line.release();
  });

  it('It is not asked while a quorum of the others is connected', async () => {
    const [lost] = nodes as [LinkedStore];
    const before = lost.count('acquire');
    lost.cut();
    await stage.deafProcess().line().hold();
    expect(lost.count('acquire')).toBe(before);
    lost.connect();
  });

  it('It is waited for if too few others are connected, so that a cut of a moment fails no acquire', async () => {
    const lost = nodes.slice(0, 2);
    for (const node of lost) node.cut();
    const outcome = outcomeOf(stage.deafProcess().line().ask());
    await clock.advance(100);
    expect(outcome.state).toBe('pending');
    for (const node of lost) node.connect();
    await clock.settle();
    expect(outcome.value?.status).toBe('granted');
  });
});
