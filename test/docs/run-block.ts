import { runInTrace } from 'reenlock';

/** Runs the module that the command line names, in a job where it says so, and ends the process when it has run. */
async function main([path = '', where]: readonly string[]): Promise<void> {
  if (where !== undefined && where !== 'job') throw new Error(`A block can run in a job, not in a ${where}`);
  const run = () => import(path);
  await (where === 'job' ? runInTrace(run) : run());
  // A page need not show how connections are closed.
  process.exit();
}

void main(process.argv.slice(2));
