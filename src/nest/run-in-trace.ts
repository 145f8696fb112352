import { Inject } from '@nestjs/common';
import { isObservable } from 'rxjs';
import { LockConfigError, type Locks, runInTrace } from '../core/index.ts';
import { LOCKS } from './locks-module.ts';
import { wrapMethod } from './wrapped-method.ts';

/** Where an instance has the module's locks. */
const own = Symbol('reenlock.locks');

/**
 * Runs a method of a provider or controller in a scope of its own, with the `Locks` of `LocksModule`, as `runInTrace` does: a
 * message handler (`@MessagePattern`, `@EventPattern`), a job's processor, a `@Cron`. Locks that are left at its end are
 * released. Within another scope it has the trace id, and so the locks, of that scope. Methods of routes have the scope of
 * their request, and don't need it.
 *
 * The method returns a promise then. It rejects with `LockConfigError` if Nest did not create its instance, or if it returns an
 * Observable, whose end would come after that of the scope.
 */
export function RunInTrace(): MethodDecorator {
  return (target, _name, descriptor) => {
    Inject(LOCKS)(target, own);
    wrapMethod(
      descriptor as PropertyDescriptor,
      (method) =>
        async function runsInTrace(this: unknown, ...args: unknown[]): Promise<unknown> {
          const locks = locksOf(this);
          return runInTrace(async () => plain(await Reflect.apply(method, this, args)), { locks });
        },
    );
  };
}

function locksOf(instance: unknown): Locks {
  const locks = (instance as { readonly [own]?: Locks } | undefined)?.[own];
  if (locks !== undefined) return locks;
  throw new LockConfigError(
    'Expected a method with `@RunInTrace` to be called on an instance that Nest has created, got another: take it from the application, or call `runInTrace` yourself',
  );
}

function plain(result: unknown): unknown {
  if (!isObservable(result)) return result;
  throw new LockConfigError(
    'Expected a method with `@RunInTrace` to return a value or a promise, got an Observable: return `lastValueFrom(observable)`',
  );
}
