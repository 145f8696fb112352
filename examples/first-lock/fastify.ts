import Fastify, { type FastifyRequest } from 'fastify';
import { lockOn, traceContext } from 'reenlock/fastify';
import { takeUnit } from './stock.ts';

type Route = { Params: { id: string } };

const app = Fastify();
const guard = lockOn((request: FastifyRequest<Route>) => `order:${request.params.id}`);

app.register(traceContext()); // each request is one owner
app.post<Route>('/orders/:id/units', { preHandler: guard }, async (request) => {
  return { units: await takeUnit(request.params.id) };
});

const port = Number(process.env.PORT ?? 3000);
app.listen({ port }, () => console.log(`Listening on http://127.0.0.1:${port}`));
