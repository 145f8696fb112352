import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { lock, runInTrace } from 'reenlock';
import { collectLockMetrics } from 'reenlock/prometheus';
import { createTestLocks, type TestLocks } from 'reenlock/testing';
import { runtimeOf } from '../../src/core/runtime/locks.ts';

const ops = join(__dirname, '../../docs/ops');
const read = (file: string): string => readFileSync(join(ops, file), 'utf8');

/** The expressions of the dashboard, and those of the alert rules. */
function expressions(): string[] {
  const dashboard = JSON.parse(read('grafana-dashboard.json')) as {
    panels: { targets: { expr: string }[] }[];
    templating: { list: { query: string }[] };
  };
  const panels = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  const variables = dashboard.templating.list.map(({ query }) => query).filter((query) => query.includes('reenlock'));
  const alerts = read('alerts.yml').match(/^ +expr: [^\n]*(\n {10}[^\n]*)*/gm) ?? [];
  return [...panels, ...variables, ...alerts];
}

/** Each metric that an expression names, with the labels that it selects, groups or shows by. */
function uses(expression: string): [metric: string, labels: string[]][] {
  const grouped = [...expression.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/,\s*/));
  const ofVariable = /label_values\(\w+, (\w+)\)/.exec(expression)?.slice(1) ?? [];
  return [...expression.matchAll(/(reenlock_\w+)(\{[^}]*\})?/g)].map(([, metric = '', selector = '']) => [
    metric,
    [...grouped, ...ofVariable, ...[...selector.matchAll(/(\w+)=/g)].map(([, label = '']) => label)],
  ]);
}

/** Every series of a registry after a scene in which each metric got a value. */
async function seriesAfterScene(): Promise<Map<string, Set<string>>> {
  const locks: TestLocks = createTestLocks();
  const registry = new Registry();
  collectLockMetrics(locks, { registry });
  const held = await locks.holdAs('one', 'order:1');
  await runInTrace(() => lock.acquire('order:1', { waitMs: 1 }), { locks }).catch(() => {});
  const waiting = runInTrace(() => lock.run('order:1', () => 'done'), { locks });
  await locks.whenWaiting('order:1');
  locks.failNext('acquire', new Error('down'));
  await runInTrace(() => lock.acquire('order:2'), { locks }).catch(() => {});
  // As a request with a bad header.
  runtimeOf(locks).events.emit('headerRefused', { reason: 'malformed' });
  const series = new Map<string, Set<string>>();
  const collect = async (): Promise<void> => {
    for (const line of (await registry.metrics()).split('\n')) {
      const [, name = '', labels = ''] = /^(reenlock_\w+)(?:\{(.*)\})? /.exec(line) ?? [];
      if (name === '') continue;
      const seen = series.get(name) ?? new Set();
      series.set(name, seen);
      for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) seen.add(label);
    }
  };
  await collect();
  await held.release();
  await waiting;
  await collect();
  await locks.end();
  return series;
}

describe('The dashboard and the alert rules', () => {
  it('Every metric and label that they name is one of the registry', async () => {
    const series = await seriesAfterScene();
    const used = expressions().flatMap(uses);
    expect(used.length).toBeGreaterThan(15);
    const unknown = used.flatMap(([metric, labels]) => {
      const known = series.get(metric);
      if (known === undefined) return [metric];
      return labels.filter((label) => !known.has(label)).map((label) => `${metric}{${label}}`);
    });
    expect(unknown).toEqual([]);
  });

  it('Every metric of the registry is shown by the dashboard', async () => {
    const shown = new Set(expressions().flatMap((expression) => uses(expression).map(([metric]) => metric)));
    const families = [...(await seriesAfterScene()).keys()].map((name) => name.replace(/_(bucket|sum|count)$/, ''));
    expect(families.filter((family) => ![...shown].some((metric) => metric.startsWith(family)))).toEqual([]);
  });
});
