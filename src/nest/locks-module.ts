import {
  type BeforeApplicationShutdown,
  type DynamicModule,
  type FactoryProvider,
  type HttpServer,
  Inject,
  type MiddlewareConsumer,
  type ModuleMetadata,
  type NestModule,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { LockConfigError, type Locks } from '../core/index.ts';
import { isOlder, tooOld } from '../core/model/peer.ts';
import { describe } from '../core/model/validate.ts';
import { type Middleware, traceContext } from '../http/connect.ts';
import { closeServer } from '../http/response/close-server.ts';
import type { TraceContextOptions } from '../http/traced-request.ts';
import { LockErrorFilter } from './error-filter.ts';

/**
 * The token of the application's `Locks`: `@Inject(LOCKS) locks: Locks`, or `app.get<Locks>(LOCKS)`.
 *
 * @example
 * ```ts
 * import { Inject, Injectable } from '@nestjs/common';
 * import type { Locks } from 'reenlock';
 * import { LOCKS } from 'reenlock/nest';
 *
 * @Injectable()
 * export class Readiness {
 *   constructor(@Inject(LOCKS) private readonly locks: Locks) {}
 *   isReady = async () => (await this.locks.ping()).ok;
 * }
 * ```
 */
export const LOCKS: unique symbol = Symbol('reenlock.locks');

const oldestNest = '11';

/** Of the module's own options. */
const OPTIONS = Symbol('reenlock.options');

/** The options of `LocksModule`: those of `traceContext`, with the `Locks` of the application. */
export interface LocksModuleOptions extends TraceContextOptions {
  readonly locks: Locks;
}

/** The options of `LocksModule.forRootAsync`: a factory of the module's options, and its dependencies. */
export interface LocksModuleAsyncOptions
  extends Pick<ModuleMetadata, 'imports'>,
    Pick<FactoryProvider<LocksModuleOptions>, 'inject' | 'useFactory'> {}

/**
 * Gives each request its trace id and its scope, responds to lock errors, and closes the locks with the application. A global
 * module: import it once, in the root module.
 *
 * - Its middleware runs before that of all modules. What `app.use` mounts before `app.init` runs earlier: to lock there,
 *   mount `traceContext` there as well, first.
 * - Lock errors get problem documents with their status and `Retry-After`. Filters of routes and controllers run first.
 * - `app.close()` lets holders finish for the `drainMs` of the `Locks`, and refuses waiters. That happens in
 *   `beforeApplicationShutdown`: close the client of the store later, in `onApplicationShutdown`.
 *
 * @example
 * ```ts
 * import { Module } from '@nestjs/common';
 * import { createLocks } from 'reenlock';
 * import { LocksModule } from 'reenlock/nest';
 *
 * @Module({ imports: [LocksModule.forRoot({ locks: createLocks() })] })
 * export class AppModule {}
 * ```
 */
export class LocksModule implements NestModule, BeforeApplicationShutdown {
  readonly #locks: Locks;
  readonly #trace: Middleware;
  #adapter: HttpServer | undefined;

  /** Called by Nest. Throws `LockConfigError` for bad options. */
  constructor(options: LocksModuleOptions, locks: Locks) {
    this.#locks = locks;
    this.#trace = traceContext({ ...options, locks });
  }

  /**
   * Returns the module, with options that you have at hand. Bad options fail with `LockConfigError` when the application starts.
   *
   * @example
   * ```ts
   * import { Module } from '@nestjs/common';
   * import { createLocks } from 'reenlock';
   * import { LocksModule } from 'reenlock/nest';
   *
   * @Module({ imports: [LocksModule.forRoot({ locks: createLocks({ waitMs: 5_000 }) })] })
   * export class AppModule {}
   * ```
   */
  static forRoot(options: LocksModuleOptions): DynamicModule {
    return LocksModule.forRootAsync({ useFactory: () => options });
  }

  /**
   * Returns the module, with options that a factory makes from other providers, such as the application's configuration. Throws
   * `LockConfigError` if Nest is too old.
   *
   * @example
   * ```ts
   * import { Module } from '@nestjs/common';
   * import { createLocks } from 'reenlock';
   * import { LocksModule } from 'reenlock/nest';
   *
   * @Module({
   *   imports: [LocksModule.forRootAsync({ useFactory: async () => ({ locks: createLocks() }) })],
   * })
   * export class AppModule {}
   * ```
   */
  static forRootAsync({ imports = [], inject = [], useFactory }: LocksModuleAsyncOptions): DynamicModule {
    const { version } = require('@nestjs/core/package.json') as { version: string };
    if (isOlder(version, oldestNest)) throw tooOld('@nestjs/core', version, oldestNest, 'reenlock/nest');
    return {
      module: LocksModule,
      global: true,
      imports,
      providers: [
        { provide: OPTIONS, inject, useFactory },
        { provide: LOCKS, inject: [OPTIONS], useFactory: locksOf },
        { provide: APP_FILTER, useClass: LockErrorFilter },
      ],
      exports: [LOCKS],
    };
  }

  /**
   * Called by Nest if there is a server. Throws `LockConfigError` if the application has this module with other locks. On the
   * adapter, not on routes: a request without a route has its trace id, too.
   */
  configure(consumer: MiddlewareConsumer): void {
    this.#adapter = (consumer as AdapterConsumer).getHttpAdapter();
    checkOnly(this.#adapter, this.#locks);
    this.#adapter.use(this.#trace);
  }

  /** Called by Nest. */
  async beforeApplicationShutdown(): Promise<void> {
    const server: unknown = this.#adapter?.getHttpServer();
    // An application without a server has none, and an HTTP/2 server ends its sessions in another way.
    if (isHttpServer(server)) await closeServer(server, this.#locks);
    else await this.#locks.close();
  }
}
// Like decorators, which would need a compiler option.
Inject(OPTIONS)(LocksModule, undefined, 0);
Inject(LOCKS)(LocksModule, undefined, 1);

function locksOf(options: LocksModuleOptions | undefined): Locks {
  const locks: Locks | undefined = options?.locks;
  if (typeof locks?.close === 'function') return locks;
  throw new LockConfigError(
    `Expected the options of \`LocksModule\` to have \`locks\`, got ${describe(locks)}: pass what \`createLocks\` returns`,
  );
}

/**
 * What Nest passes to `configure`, in full. Injecting the adapter takes a class of `@nestjs/core` as its token, and tsx loads a
 * second copy of that package for those that are CommonJS, such as this one.
 */
interface AdapterConsumer extends MiddlewareConsumer {
  getHttpAdapter(): HttpServer;
}

/** The locks of each application that has the module. */
const locksByApplication = new WeakMap<HttpServer, Locks>();

/** With two, it would depend on the order of imports whose locks a request and a provider get. */
function checkOnly(adapter: HttpServer, locks: Locks): void {
  const known = locksByApplication.get(adapter) ?? locks;
  if (known !== locks) {
    throw new LockConfigError(
      'Expected an application to import `LocksModule` once, in its root module, got two with different `locks`: import one of them',
    );
  }
  locksByApplication.set(adapter, locks);
}

function isHttpServer(server: unknown): server is Parameters<typeof closeServer>[0] {
  return typeof server === 'object' && server !== null && 'closeIdleConnections' in server;
}
