import { publicCall } from '../base/call-site.ts';
import { LockConfigError } from '../model/errors/mistakes.ts';
import { assertConstantKey, type KeyPlace, type LockKey, type LockKeys } from '../model/key.ts';
import { checkAcquireOptions } from '../model/options.ts';
import type { AcquireOptions } from '../model/types.ts';
import { describe } from '../model/validate.ts';
import { getLock, nameOf, runAllNow, runNow } from './lock.ts';

/** Names what one call of a method locks: a key, or several, from the call's arguments and, by `this`, its object. */
export type MethodKey<This, Args extends readonly unknown[]> = (
  this: This,
  ...args: Args
) => LockKeys | PromiseLike<LockKeys>;

/**
 * Decorates a method with exactly these arguments; the first signature is that of standard decorators, the second that
 * of `experimentalDecorators`. `Standard` and `Legacy` are the type of `this` in either mode.
 */
export interface LockedDecorator<Standard, Legacy, Args extends readonly unknown[]> {
  (method: AsyncMethod<Args>, context: ClassMethodDecoratorContext<Standard>): void;
  (target: Legacy, name: string | symbol, descriptor: Described<AsyncMethod<Args>>): void;
}

/** Decorates any method whose arguments the key function takes; in both modes, like `LockedDecorator`. */
export interface ReusableLockedDecorator<K> {
  <This, M extends AsyncMethod>(method: M, context: ClassMethodDecoratorContext<This> & Fitting<K, This, M>): void;
  <This, M extends AsyncMethod>(
    target: This,
    name: string | symbol,
    descriptor: Described<M> & Fitting<K, This, M>,
  ): void;
}

/**
 * Runs a method with its key held, as `lock.run` does: acquires, calls the method, and releases when what it returned has
 * settled. `this`, the arguments, the result and the error pass through as they are. Works as a standard decorator and
 * under `experimentalDecorators`, on methods of any visibility, static ones too; nested calls re-enter.
 *
 * The key is a constant, or a function of the method's arguments and `this`, sync or async. If it returns a list, all
 * of its keys are held, as `lock.runAll` does it. `options` are those of an acquire, `category` among them.
 *
 * The method must return a promise, since a lock can't be waited for in any other way: a synchronous one does not
 * compile. In JavaScript, the decorated method returns a promise of what the method returned. A generator, whose work would
 * begin after the release, is refused.
 *
 * Throws `LockConfigError` when the class is defined: for bad options, a constant key that was meant as a template, and
 * anything that is no method. A call rejects as `lock.run` does, with `LockKeyError` if the key function returns no
 * valid key, and with what the key function throws. In the last two cases the method has not run.
 *
 * @example
 * ```ts
 * import { Locked } from 'reenlock';
 *
 * export class Wallets {
 *   @Locked((from: string, to: string) => [`wallet:${from}`, `wallet:${to}`], { waitMs: 2_000 })
 *   async transfer(from: string, to: string, amount: number): Promise<void> {
 *     await moveMoney(from, to, amount);
 *   }
 * }
 * ```
 */
export function Locked<Standard, Legacy, Args extends readonly unknown[]>(
  // Inferred from the method alone: the key function may have fewer parameters, or wider ones.
  key: NoInfer<MethodKey<unknown extends Standard ? Legacy : Standard, Args>>,
  options?: AcquireOptions,
): LockedDecorator<Standard, Legacy, Args>;
export function Locked<K extends string | MethodKey<never, never>>(
  key: K,
  options?: AcquireOptions,
): ReusableLockedDecorator<K>;
export function Locked(key: unknown, options?: AcquireOptions, ...more: unknown[]): Decorator {
  // If the decorator was not called, its first argument is the method instead of a key.
  if (isStandardContext(options) || more.length > 0) {
    throw new LockConfigError(`Expected @Locked to be called with a key. Write \`${methodKey.instead}\``);
  }
  const run = runnerOf(key, checkAcquireOptions(options, 'Locked'));
  return function decorate(target, context, descriptor) {
    if (isStandardContext(context)) {
      if (context.kind !== 'method') throw notAMethod(context.kind, context.name);
      return lockedMethod(target, context.name, run);
    }
    const { value } = Object(descriptor) as PropertyDescriptor;
    if (typeof value !== 'function') throw notAMethod(kindOf(context, descriptor), context);
    return { ...(descriptor as PropertyDescriptor), value: lockedMethod(value, context, run) };
  };
}

type AsyncMethod<Args extends readonly unknown[] = never> = (this: never, ...args: Args) => Promise<unknown>;

/** The part of a `TypedPropertyDescriptor` that is needed; that type itself would have to match exactly. */
interface Described<M> {
  readonly value?: M;
}

/** `unknown` if the key function takes the method's parameters; otherwise a type that no argument has. */
type Fitting<K, This, M extends AsyncMethod> = [K] extends [string | MethodKey<This, Parameters<M>>]
  ? unknown
  : { readonly 'The parameters of the key function do not fit those of the method': K };

type Decorator = (target: unknown, context: unknown, descriptor?: unknown) => unknown;

/** Runs a routine while the keys of the call are held. */
type Runner = (self: unknown, args: readonly unknown[], routine: () => unknown) => Promise<unknown>;

const methodKey: KeyPlace = {
  expected: `the key of @Locked to be a function of the method's arguments`,
  instead: '@Locked((id: string) => id)',
};

function runnerOf(key: unknown, options: AcquireOptions): Runner {
  if (typeof key === 'string') {
    assertConstantKey(key, methodKey);
    const ofKey = getLock(key, options);
    return (_self, _args, routine) => ofKey.run(routine);
  }
  if (typeof key !== 'function') {
    throw new LockConfigError(`Expected the key of @Locked to be a string or a function, got ${describe(key)}`);
  }
  return async (self, args, routine) => {
    const keys = await (Reflect.apply(key, self, args) as LockKeys | PromiseLike<LockKeys>);
    return publicCall(() => {
      if (Array.isArray(keys)) return runAllNow(keys, routine, options);
      // An invalid key is refused with its name, whatever its type.
      return runNow(routine, nameOf(keys as LockKey, options.category), options);
    });
  };
}

function lockedMethod(method: unknown, name: unknown, run: Runner): unknown {
  const routine = method as (...args: unknown[]) => unknown;
  if (Object.prototype.toString.call(method).endsWith('GeneratorFunction]')) throw notAMethod('generator', name);
  function locked(this: unknown, ...args: unknown[]): Promise<unknown> {
    return run(this, args, () => Reflect.apply(routine, this, args));
  }
  // Keeps what other decorators put on the method, including metadata, in any order of the decorators.
  Object.setPrototypeOf(locked, routine);
  return Object.defineProperties(locked, {
    name: { value: routine.name, configurable: true },
    length: { value: routine.length, configurable: true },
  });
}

function isStandardContext(context: unknown): context is { readonly kind: string; readonly name: unknown } {
  return typeof context === 'object' && context !== null && 'kind' in context;
}

/** What a decorator under `experimentalDecorators` decorates, by its arguments. */
function kindOf(name: unknown, descriptor: unknown): string {
  if (typeof descriptor === 'number') return 'parameter';
  if (name === undefined) return 'class';
  const { get, set } = Object(descriptor) as PropertyDescriptor;
  return get === undefined && set === undefined ? 'field' : 'getter or setter';
}

function notAMethod(kind: string, name: unknown): LockConfigError {
  const named = name === undefined ? '' : ` \`${String(name)}\``;
  return new LockConfigError(`Expected @Locked to decorate a method that returns a promise, got the ${kind}${named}`);
}
