/**
 * The worker's side of `startWorker`: `open(config)` returns the methods that the parent may call; `close` is one of
 * them, and `usedUs`, the processor time of this process, is added. The process ends with its parent, or when the parent
 * disconnects.
 */
export async function serve(open) {
  const methods = { usedUs, ...(await open(JSON.parse(process.argv[2]))) };
  process.on('message', async ({ id, method, params }) => {
    try {
      process.send({ id, result: await methods[method](params) });
    } catch (error) {
      process.send({ id, error: error.stack });
    }
  });
  process.on('disconnect', () => process.exit());
  process.send({ id: 0 });
}

function usedUs() {
  const { user, system } = process.cpuUsage();
  return user + system;
}
