import { currentTrace, isLockError, type Locks, runInTrace } from 'reenlock';
import type { PaymentService } from '../orders/payment-service.ts';

/**
 * Settles what was charged, order by order. A job has no request, so it gets a scope, and with it a trace id, from
 * `runInTrace`; the lock that it takes on an order is the one that requests take. Once the signal is aborted it begins
 * no further order and waits for none.
 */
export function settleOrders(payments: PaymentService, locks: Locks, signal: AbortSignal): Promise<void> {
  return runInTrace(
    async () => {
      const log = (line: string): void => console.log(`settlement ${currentTrace()?.traceId}: ${line}`);
      for (const id of await payments.orders()) {
        try {
          const cents = await payments.settle(id, { signal });
          if (cents > 0) log(`order ${id}, ${cents} cents`);
        } catch (error) {
          if (!isLockError(error)) throw error;
          if (error.code === 'ERR_LOCK_ABORTED') return log('stopped');
          // A busy order is left for the next round.
          log(`order ${id} skipped: ${error.message}`);
        }
      }
    },
    { locks },
  );
}
