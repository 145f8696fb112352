import type { Granted } from '../client/granted.ts';
import { Grant, type GrantSource } from '../lease/grant.ts';
import { ScopedHold } from './hold.ts';
import type { Scope } from './scope.ts';
import { ScopedController } from './scoped-controller.ts';

/** What the store was asked for. */
export type GrantTerms = Pick<GrantSource, 'name' | 'request' | 'settings'>;

/** Adds the first hold of a scope on what the store granted. */
export function firstHold(scope: Scope, terms: GrantTerms, granted: Granted): ScopedHold {
  const { name, request, settings } = terms;
  const { clock, grants } = scope.runtime;
  const createController = (): ScopedController => new ScopedController(scope);
  const grant = new Grant({ clock, createController, name, traceId: scope.traceId, request, settings, granted });
  grant.addHold(settings.leaseMs, settings.renew);
  const first = new ScopedHold(grant, scope, settings.renew);
  scope.add(first);
  grants.add(grant);
  return first;
}
