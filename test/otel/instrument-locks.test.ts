import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type Span,
} from '@opentelemetry/sdk-trace-base';
import { createLocks, getLock, lock, MemoryStore, runInTrace } from 'reenlock';
import { type InstrumentLocksOptions, instrumentLocks } from 'reenlock/otel';
import { createTestLocks, type TestLocks } from 'reenlock/testing';
import { gate } from '../support/gate.ts';
import { until } from '../support/until.ts';
import { recordWarnings } from '../support/warnings.ts';

const warnings = recordWarnings();
const exporter = new InMemorySpanExporter();
/** The ids of the spans, in the order in which they began. */
const begun: string[] = [];
class OrderedSpanProcessor extends SimpleSpanProcessor {
  override onStart(span: Span): void {
    begun.push(span.spanContext().spanId);
  }
}
const tracerProvider = new BasicTracerProvider({ spanProcessors: [new OrderedSpanProcessor(exporter)] });
const tracer = tracerProvider.getTracer('test');

let locks: TestLocks;
let stop: () => void;
function instrument(options: InstrumentLocksOptions = {}): void {
  stop = instrumentLocks(locks, { tracerProvider, ...options });
}

/** A job in a span of its own. */
async function job<T>(name: string, routine: () => Promise<T>, of: TestLocks = locks): Promise<T> {
  const span = tracer.startSpan(name);
  try {
    return await context.with(trace.setSpan(context.active(), span), () =>
      runInTrace(routine, { locks: of, traceId: `trace of ${name}`.replaceAll(' ', '-') }),
    );
  } finally {
    span.end();
  }
}

const spans = (): readonly ReadableSpan[] => exporter.getFinishedSpans();
const named = (name: string): ReadableSpan => spans().find((span) => span.name === name) as ReadableSpan;
const attribute = (span: ReadableSpan, name: string): unknown => span.attributes[`reenlock.${name}`];

/** The spans as a tree: children below their parents, in the order in which they began. */
function tree(parent?: ReadableSpan): string[] {
  const isChild = (span: ReadableSpan): boolean => span.parentSpanContext?.spanId === parent?.spanContext().spanId;
  const children = spans().filter(isChild).sort(byStart);
  return children.flatMap((span) => [describeSpan(span), ...tree(span).map((line) => `  ${line}`)]);
}

function byStart(a: ReadableSpan, b: ReadableSpan): number {
  return begun.indexOf(a.spanContext().spanId) - begun.indexOf(b.spanContext().spanId);
}

function describeSpan(span: ReadableSpan): string {
  const blocker = (spanId: string): string => {
    const holder = spans().find((each) => each.spanContext().spanId === spanId) as ReadableSpan;
    return `blocked by a ${holder.name} of ${attribute(holder, 'lock.trace_id')}`;
  };
  const outcome = attribute(span, 'lock.outcome');
  const details = [
    ...(outcome === undefined ? [] : [outcome]),
    ...span.links.map((link) => blocker(link.context.spanId)),
    ...(span.status.code === SpanStatusCode.ERROR ? ['ERROR'] : []),
  ];
  return details.length === 0 ? span.name : `${span.name}: ${details.join(', ')}`;
}

describe('instrumentLocks', () => {
  beforeEach(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    locks = createTestLocks();
  });
  afterEach(async () => {
    stop();
    exporter.reset();
    context.disable();
    await locks.end();
  });

  it('Jobs that contend have their own acquires and holds as children, and each waiter links to the hold that blocks it', async () => {
    instrument();
    const category = 'orders';
    const order = getLock('order:42', { category });
    const jobs: Promise<unknown>[] = [];
    const released = gate();
    jobs.push(job('job 1', () => order.run(() => order.run(() => released))));
    for (const count of [1, 2]) {
      jobs.push(job(`job ${count + 1}`, () => order.run(() => 'done')));
      await locks.whenWaiting('order:42', count, { category });
    }
    released.open();
    await Promise.all(jobs);
    expect(tree()).toEqual([
      'job 1',
      '  acquire orders: granted',
      '  hold orders: released',
      'job 2',
      '  acquire orders: granted, blocked by a hold orders of trace-of-job-1',
      '  hold orders: released',
      'job 3',
      '  acquire orders: granted, blocked by a hold orders of trace-of-job-1',
      '  hold orders: released',
    ]);
  });

  it('The spans show the key, the owner, the call and the end of each acquire', async () => {
    instrument();
    await job('job', () => lock.run('order:42', () => 'done', { category: 'orders' }));
    const { attributes } = named('acquire orders');
    expect(attributes).toEqual({
      'reenlock.lock.name': 'orders',
      'reenlock.lock.key': 'order:42',
      'reenlock.lock.mode': 'write',
      'reenlock.lock.trace_id': 'trace-of-job',
      'reenlock.lock.branch': '',
      'reenlock.lock.caller': 'code',
      'reenlock.lock.queued': false,
      'reenlock.lock.outcome': 'granted',
      'reenlock.lock.fence': expect.any(Number),
    });
    const { 'reenlock.lock.caller': _, 'reenlock.lock.queued': __, ...shared } = attributes;
    expect(named('hold orders').attributes).toEqual({ ...shared, 'reenlock.lock.outcome': 'released' });
  });

  it('No span has a key with `keys: false`, and `lockName` names the spans', async () => {
    instrument({ keys: false, lockName: ({ category }) => `${category}!` });
    await job('job', () => lock.run('order:42', () => 'done', { category: 'orders' }));
    expect(tree()).toEqual(['job', '  acquire orders!: granted', '  hold orders!: released']);
    for (const { attributes, status } of spans()) {
      expect(JSON.stringify([attributes, status])).not.toContain('order:42');
    }
  });

  it('Spans of the store’s client are children of the acquire’s span', async () => {
    class TracedStore extends MemoryStore {
      override acquire(...args: Parameters<MemoryStore['acquire']>): ReturnType<MemoryStore['acquire']> {
        tracer.startSpan('EVALSHA').end();
        return super.acquire(...args);
      }
    }
    const traced = createLocks({ store: new TracedStore() });
    stop = instrumentLocks(traced, { tracerProvider });
    await job('job', () => lock.run('key', () => 'done'), traced as TestLocks);
    expect(tree()).toEqual(['job', '  acquire default: granted', '    EVALSHA', '  hold default: released']);
    await traced.close();
  });

  it('An acquire that times out, is aborted or whose store fails is an error; one that was only tried is not', async () => {
    instrument();
    const hold = await locks.holdAs('another', 'key');
    await job('timeout', () => lock.acquire('key', { waitMs: 1 })).catch(() => {});
    await job('abort', async () => {
      const controller = new AbortController();
      const acquired = lock.acquire('key', { signal: controller.signal });
      await locks.whenWaiting('key');
      controller.abort();
      await acquired;
    }).catch(() => {});
    await job('try', () => lock.tryAcquire('key'));
    await hold.release();
    locks.failNext('acquire', new Error('down'));
    await job('store', () => lock.acquire('other')).catch(() => {});
    expect(tree()).toEqual([
      'acquire default: granted',
      'hold default: released',
      'timeout',
      '  acquire default: timeout, blocked by a hold default of another, ERROR',
      'abort',
      '  acquire default: aborted, blocked by a hold default of another, ERROR',
      'try',
      '  acquire default: refused',
      'store',
      '  acquire default: refused, ERROR',
    ]);
    expect(spans().flatMap(({ attributes }) => attributes['error.type'] ?? [])).toEqual([
      'ERR_LOCK_TIMEOUT',
      'ERR_LOCK_ABORTED',
      'ERR_LOCK_TIMEOUT',
      'ERR_LOCK_STORE',
    ]);
  });

  it('A hold that is lost is an error', async () => {
    instrument();
    await job('job', async () => {
      await lock.acquire('key');
      await locks.loseLock('key');
    });
    expect(tree()).toEqual(['job', '  acquire default: granted', '  hold default: lost, ERROR']);
  });

  it('A waiter that no hold of this process blocks names the trace that the store names, after a second', async () => {
    const store = new MemoryStore();
    const [here, elsewhere] = [createLocks({ store }), createLocks({ store })];
    stop = instrumentLocks(here, { tracerProvider });
    const released = gate();
    const granted = new Promise((resolve) => elsewhere.on('granted', resolve));
    const holding = runInTrace(() => lock.run('key', () => released), { locks: elsewhere, traceId: 'elsewhere' });
    await granted;
    const waiting = new Promise((resolve) => here.on('waiting', resolve));
    // Only the timers: the clocks of both `Locks` go on.
    jest.useFakeTimers({ doNotFake: ['Date', 'hrtime', 'nextTick', 'performance', 'queueMicrotask'] });
    const acquired = job('job', () => lock.run('key', () => 'done'), here as TestLocks);
    await waiting;
    const inspected = jest.spyOn(store, 'inspect');
    jest.advanceTimersByTime(999);
    expect(inspected).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    jest.useRealTimers();
    await until(() => inspected.mock.calls.length > 0);
    released.open();
    await Promise.all([holding, acquired]);
    expect(inspected).toHaveBeenCalledTimes(1);
    expect(attribute(named('acquire default'), 'blocked_by.trace_id')).toBe('elsewhere');
    await Promise.all([here.close(), elsewhere.close()]);
  });

  it('After `stop`, nothing is traced, and what was open has ended', async () => {
    instrument();
    const hold = await locks.holdAs('one', 'key');
    expect(spans().map(({ name }) => name)).toEqual(['acquire default']);
    stop();
    expect(spans().map(({ name }) => name)).toEqual(['acquire default', 'hold default']);
    await hold.release();
    await job('job', () => lock.run('key', () => 'done'));
    expect(spans()).toHaveLength(3);
  });

  it('A second call for the same `Locks` and provider is an error, since each span and metric would be made twice', async () => {
    const [meterProvider, other] = [new MeterProvider(), new MeterProvider()];
    const otherTracers = new BasicTracerProvider();
    instrument({ meterProvider });
    const message = 'Expected a `Locks` that `instrumentLocks` does not observe yet for this';
    for (const again of [{ meterProvider: other }, { meterProvider, tracerProvider: otherTracers }]) {
      const call = () => instrumentLocks(locks, { tracerProvider, ...again });
      expect(call).toThrow(
        expect.objectContaining({ code: 'ERR_LOCK_CONFIG', message: expect.stringContaining(message) }),
      );
    }
    await job('job', () => lock.run('key', () => 'done'));
    expect(tree()).toEqual(['job', '  acquire default: granted', '  hold default: released']);
    const others = createTestLocks();
    instrumentLocks(others, { tracerProvider, meterProvider })();
    await others.end();
    instrumentLocks(locks, { tracerProvider: otherTracers, meterProvider: other })();
    stop();
    instrument({ meterProvider });
    await Promise.all([meterProvider.shutdown(), other.shutdown(), otherTracers.shutdown()]);
  });

  it('The acquires of other `Locks` are not traced', async () => {
    instrument();
    const others = createTestLocks();
    await job('job', () => lock.run('key', () => 'done'), others);
    expect(tree()).toEqual(['job']);
    await others.end();
  });

  it('A `lockName` that throws breaks no acquire: the lock is named `other`, and there is a warning', async () => {
    instrument({
      lockName: () => {
        throw new Error('no name');
      },
    });
    await job('job', () => lock.run('key', () => 'done'));
    expect(tree()).toEqual(['job', '  acquire other: granted', '  hold other: released']);
    expect(warnings().map(({ message }) => message)).toEqual([expect.stringContaining('lockName')]);
  });

  it('Metrics report how acquires ended, how long locks were held, and what is held and waited for now', async () => {
    const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter: metricExporter });
    const meterProvider = new MeterProvider({ readers: [reader] });
    instrument({ meterProvider });
    const collected = async () => {
      metricExporter.reset();
      await reader.forceFlush();
      const metrics = metricExporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((s) => s.metrics));
      return metrics.flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => {
          const shown = typeof value === 'number' ? value : value.count;
          return `${descriptor.name} ${descriptor.unit} ${JSON.stringify(attributes)} ${shown}`;
        }),
      );
    };
    const hold = await locks.holdAs('one', 'order:1', { category: 'orders' });
    const waiting = runInTrace(() => lock.run('order:1', () => 1, { category: 'orders' }), { locks });
    await locks.whenWaiting('order:1', 1, { category: 'orders' });
    expect(await collected()).toEqual(
      expect.arrayContaining([
        'reenlock.acquire.duration s {"lock":"orders","mode":"write","outcome":"granted"} 1',
        'reenlock.holds {hold} {"lock":"orders"} 1',
        'reenlock.waiters {acquire} {"lock":"orders"} 1',
        expect.stringMatching(/^reenlock\.hold\.age\.max s \{"lock":"orders"\} \d/),
        expect.stringMatching(/^reenlock\.wait\.age\.max s \{"lock":"orders"\} \d/),
      ]),
    );
    await runInTrace(() => lock.run('order:1', () => 1, { category: 'orders' }), { locks, traceId: 'one' });
    await hold.release();
    await waiting;
    locks.failNext('acquire', new Error('down'));
    await runInTrace(() => lock.run('k', () => 1), { locks }).catch(() => {});
    expect(await collected()).toEqual([
      'reenlock.acquire.duration s {"lock":"orders","mode":"write","outcome":"granted"} 3',
      'reenlock.acquire.duration s {"lock":"default","mode":"write","outcome":"refused"} 1',
      'reenlock.hold.duration s {"lock":"orders","mode":"write","outcome":"released"} 3',
      'reenlock.store.errors {call} {"operation":"acquire","outcome":"unknown"} 1',
      'reenlock.store.down 1 {} 0',
      'reenlock.overlaps {hold} {"lock":"orders"} 1',
      'reenlock.holds {hold} {"lock":"orders"} 0',
      'reenlock.waiters {acquire} {"lock":"orders"} 0',
      'reenlock.hold.age.max s {"lock":"orders"} 0',
      'reenlock.wait.age.max s {"lock":"orders"} 0',
    ]);
    await meterProvider.shutdown();
  });
});
