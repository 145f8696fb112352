// Lets processes lock for as many minutes as are named while everything goes wrong that can, and checks what they went
// through:
//   node scripts/soak.mjs 10               ten minutes on each store; one without an argument
//   node scripts/soak.mjs 10 quorum        on one of those in test/fault/backends.ts
//   FAULT_SEED=42 node scripts/soak.mjs    the same faults as in the run that printed this seed

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const [minutes, store] = [Number(process.argv[2] ?? 1), process.argv[3]];

if (Number.isFinite(minutes) && minutes > 0) {
  const jest = join(root, 'node_modules/jest/bin/jest.js');
  const env = { ...process.env, FAULTS: 'long', SOAK_MINUTES: String(minutes), ...(store && { SOAK_STORE: store }) };
  const { status } = spawnSync(process.execPath, [jest, 'test/fault/soak'], { cwd: root, env, stdio: 'inherit' });
  process.exitCode = status ?? 1;
} else {
  console.error(`soak: expected a number of minutes, got ${process.argv[2]}`);
  process.exitCode = 1;
}
