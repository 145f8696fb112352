import { Inject } from '@nestjs/common';
import { isObservable } from 'rxjs';
import { LockConfigError, type Locks, runInTrace } from '../core/index.ts';
import { LOCKS } from './locks-module.ts';
import { wrapMethod } from './wrapped-method.ts';

/** Where an instance has the module's locks. */
const own = Symbol('reenlock.locks');

/**
 * Runs a method of a provider or controller as a job, with the `Locks` of `LocksModule`, as `runInTrace` does: a message handler
 * (`@MessagePattern`, `@EventPattern`), a queue's processor, a `@Cron`. Locks that it still holds at its end are released. Within
 * another request or job it has that one's trace, and so may re-enter its locks. Methods of routes don't need it.
 *
 * The method returns a promise then. It rejects with `LockConfigError` if Nest did not create its instance, or if it returns an
 * Observable, which would end after the job.
 *
 * @example
 * ```ts
 * import { Injectable } from '@nestjs/common';
 * import { Locked } from 'reenlock';
 * import { RunInTrace } from 'reenlock/nest';
 *
 * @Injectable()
 * export class Reports {
 *   @RunInTrace() @Locked('report')
 *   async nightly(): Promise<void> { await writeReport(); }
 * }
 * ```
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
