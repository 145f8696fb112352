import {
  type AcquireReply,
  type AcquireTerms,
  type HoldRequest,
  MemoryStore,
  type ReleaseReply,
  type ReleaseTerms,
  type RenewReply,
  type RenewTerms,
} from 'reenlock';

/** A store that lets everybody in: each request gets an order's lock for itself. To show what goes wrong then. */
export class OpenStore extends MemoryStore {
  override async acquire(request: HoldRequest, terms: AcquireTerms): Promise<AcquireReply> {
    return super.acquire(ownLock(request), terms);
  }

  override async renew(request: HoldRequest, terms: RenewTerms): Promise<RenewReply> {
    return super.renew(ownLock(request), terms);
  }

  override async release(request: HoldRequest, terms: ReleaseTerms): Promise<ReleaseReply> {
    return super.release(ownLock(request), terms);
  }
}

function ownLock(request: HoldRequest): HoldRequest {
  return { ...request, id: `${request.id}/${request.owner}` };
}
