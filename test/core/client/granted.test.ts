import { remainingMs } from '../../../src/core/base/deadline.ts';
import { grantedByMessage, grantedByReply } from '../../../src/core/client/granted.ts';

const sent = { monoMs: 1_000, wallMs: 1_700_000_000_000 };
const later = (ms: number) => ({ monoMs: sent.monoMs + ms, wallMs: sent.wallMs + ms });
const nowMs = 5_000;

describe('A grant in the reply to its own call', () => {
  const byReply = (endMs: number, receivedMs: number, leaseMs = 60_000) => {
    const grant = { holdId: 'id', fence: 7, endMs, isClaim: true, otherHolds: 2 };
    const reply = { status: 'granted', grant, nowMs, claims: [] } as const;
    return grantedByReply(reply, sent, later(receivedMs), leaseMs);
  };

  it('A grant is what the store said, with a deadline from before the call', () => {
    const granted = byReply(nowMs + 1_000, 300);
    expect(granted).toMatchObject({ fence: 7, isClaim: true, otherHolds: 2, receivedAt: later(300) });
    expect(remainingMs(later(300), granted!.deadline)).toBe(688);
  });

  it('A grant whose lease had expired on arrival, to the millisecond, is none', () => {
    expect(byReply(nowMs + 1_000, 987)).toBeDefined();
    expect(byReply(nowMs + 1_000, 988)).toBeUndefined();
  });

  it('A grant lasts no longer than was asked for, even if the store’s clock was set back since', () => {
    expect(remainingMs(later(300), byReply(nowMs + 86_400_000, 300, 1_000)!.deadline)).toBe(688);
  });

  it('A grant whose end is not a number is none', () => {
    expect(byReply(Number.NaN, 0)).toBeUndefined();
  });
});

describe('A claim by message', () => {
  const claimMs = 900;
  const byMessage = (endMs: number, receivedMs: number, askedMs = receivedMs, sentMs = 0) => {
    const grant = { holdId: 'id', fence: 7, endMs, isClaim: true, otherHolds: 2, equalHolds: 1 };
    return grantedByMessage(grant, { sent: later(sentMs), nowMs }, later(receivedMs), later(askedMs), claimMs);
  };

  it('A claim ends by the latest reply about its lock, counted from before that call', () => {
    const granted = byMessage(nowMs + 1_000, 300);
    expect(granted).toMatchObject({ fence: 7, isClaim: true, otherHolds: 2, equalHolds: 1, receivedAt: later(300) });
    expect(remainingMs(later(300), granted!.deadline)).toBe(688);
  });

  it('A claim ends its own length after it was received at the latest, however late that is found', () => {
    expect(remainingMs(later(500), byMessage(nowMs + 60_000, 300, 500)!.deadline)).toBe(700);
  });

  it('A claim with less than a third left, by either count, is none', () => {
    expect(byMessage(nowMs + 1_000, 688)).toBeDefined();
    expect(byMessage(nowMs + 1_000, 689)).toBeUndefined();
    expect(byMessage(nowMs + 60_000, 0, 600)).toBeDefined();
    expect(byMessage(nowMs + 60_000, 0, 601)).toBeUndefined();
  });
});
