import { startWorker } from './workers.mjs';

/** Each application in a process of its own, and one process that sends requests to whichever is measured. */
export async function startApps(names, ports) {
  const load = await startWorker('http-load', {});
  const servers = [];
  const apps = new Map();
  for (const name of names) {
    const server = await startWorker('express-server', { app: name, ports });
    const origin = await server.call('origin');
    servers.push(server);
    apps.set(name, {
      server,
      post: (path, params) => load.call('post', { url: origin + path, ...params }),
      counts: () => server.call('counts'),
    });
  }
  return {
    get: (name) => apps.get(name),
    close: () => Promise.all([load, ...servers].map((worker) => worker.close())),
  };
}
