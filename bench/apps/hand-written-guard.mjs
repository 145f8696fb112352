import rTracer from 'cls-rtracer';
import { create as createBarePair } from '../contenders/bare-pair.mjs';

/** What one would write in ten lines: the bare pair around the handler, its second half when the response is out. */
export async function create({ client }) {
  const pair = createBarePair();
  await pair.setup({ client });

  async function guard(req, res, next) {
    const handle = await pair.lock(`order:${req.params.id}`);
    res.once('finish', () => pair.unlock(handle));
    next();
  }
  return { context: rTracer.expressMiddleware(), guard };
}
