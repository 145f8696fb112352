import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promtoolBinary } from '../support/prometheus/binary.ts';

const rules = join(__dirname, '../../docs/ops/alerts.yml');
const alerts = [...readFileSync(rules, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);

/** What Prometheus has scraped, by series: a value a minute. `0x5` stands for six zeros, `_` for no sample. */
type Scene = Readonly<Record<string, string>>;

const orders = 'lock="orders",mode="write"';
const lost = `reenlock_hold_duration_seconds_count{instance="a",${orders},outcome="lost"}`;
const deadlocks = `reenlock_acquire_duration_seconds_count{instance="a",${orders},outcome="deadlock"}`;
const acquires = (outcome: string): string =>
  `reenlock_acquire_duration_seconds_count{instance="a",${orders},outcome="${outcome}"}`;

/** Each scene, with the alerts that fire at its end, after twelve minutes. */
const scenes: readonly [what: string, fires: readonly string[], scene: Scene][] = [
  [
    'nothing happens',
    [],
    { [lost]: '0x12', [deadlocks]: '0x12', [acquires('granted')]: '0+60x12', reenlock_store_down: '0x12' },
  ],
  ['a process loses a hold, its first one', ['LocksAreLost'], { [lost]: '0x8 1x3' }],
  ['a series begins with a loss', ['LocksAreLost'], { [lost]: '_x8 1x3' }],
  ['a hold was lost long ago', [], { [lost]: '5x12' }],
  ['a process closes a deadlock, its first one', ['LockDeadlocks'], { [deadlocks]: '0x8 1x3' }],
  ['a series begins with a deadlock', ['LockDeadlocks'], { [deadlocks]: '_x8 1x3' }],
  [
    'a hold is two minutes old, and does not end',
    ['LockHoldIsStuck'],
    { 'reenlock_oldest_hold_seconds{lock="orders"}': '0+60x12' },
  ],
  ['holds end', [], { 'reenlock_oldest_hold_seconds{lock="orders"}': '60x12' }],
  [
    'one acquire in ten times out',
    ['LockWaitsTimeOut'],
    { [acquires('granted')]: '0+90x12', [acquires('timeout')]: '0+10x12' },
  ],
  ['one acquire in fifty times out', [], { [acquires('granted')]: '0+98x12', [acquires('timeout')]: '0+2x12' }],
  [
    'the store of one process is down',
    ['LockStoreIsDown'],
    { 'reenlock_store_down{instance="a"}': '0x12', 'reenlock_store_down{instance="b"}': '0x9 1x2' },
  ],
  [
    'calls to the store fail all the time',
    ['LockStoreFails'],
    { 'reenlock_store_errors_total{operation="renew",outcome="unknown"}': '0+30x12' },
  ],
  [
    'one call to the store failed',
    [],
    { 'reenlock_store_errors_total{operation="renew",outcome="unknown"}': '0x8 1x3' },
  ],
  [
    'a guard lets a request in',
    ['LockGuardsFailOpen'],
    { 'reenlock_guard_failed_open_total{instance="a"}': '0x9 1x2' },
  ],
  [
    'a guard lets a request in, and its series begins with that',
    ['LockGuardsFailOpen'],
    { 'reenlock_guard_failed_open_total{instance="a"}': '_x9 1x2' },
  ],
  [
    'two requests of one bare trace id hold a lock at once',
    ['LockOverlaps'],
    { 'reenlock_overlaps_total{instance="a", lock="order"}': '0x9 1x2' },
  ],
];

describe('The alert rules', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'reenlock-alerts-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  /** Plays a scene, and returns what promtool says of each alert that was expected in vain, or fires unexpectedly. */
  function play(scene: Scene, expected: (alert: string) => object[]): string {
    const test = {
      interval: '1m',
      input_series: Object.entries(scene).map(([series, values]) => ({ series, values })),
      alert_rule_test: alerts.map((alertname) => ({ eval_time: '11m', alertname, exp_alerts: expected(alertname) })),
    };
    const file = join(folder, 'scene.yml');
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ rule_files: [rules], evaluation_interval: '30s', tests: [test] }));
    const { stdout, stderr } = spawnSync(promtoolBinary(), ['test', 'rules', file], { encoding: 'utf8' });
    return stdout + stderr;
  }

  it.each(scenes)('When %s, %j fire and no other alert', (_, fires, scene) => {
    // That no alert is expected makes promtool list each one that fires.
    const said = play(scene, () => []);
    const fired = [...said.matchAll(/alertname: (\w+), time: 11m,[\s\S]*?got:\[/g)].map(([, name]) => name);
    expect({ said, fired }).toEqual({ said, fired: fires });
    expect(said).toContain(fires.length === 0 ? 'SUCCESS' : 'FAILED');
  });

  it('Each alert fires in a scene', () => {
    expect(new Set(scenes.flatMap(([, fires]) => fires))).toEqual(new Set(alerts));
  });
});
