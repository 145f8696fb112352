import type { HoldRequest } from './store/store.ts';

/** A hold request, and what this process knows of its calls. */
export interface Ticket extends HoldRequest {
  /** Acquires and polls that the store has not answered: one may still arrive there after the release. */
  unanswered: number;
}
