import express from 'express';
import { createLocks, runInTrace, traceHeaders } from 'reenlock';
import { traceContext } from 'reenlock/express';
import request from 'supertest';

it('traceHeaders sends the id in the header that traceContext reads, also from a job within the request', async () => {
  const locks = createLocks();
  const app = express();
  app.use(traceContext({ locks, headerName: 'X-Request-Id' }));
  app.get('/', async (_req, res) => res.json([traceHeaders(), await runInTrace(traceHeaders)]));
  const { body } = await request(app).get('/').set('X-Request-Id', 'trace-1');
  expect(body).toEqual([
    { 'X-Request-Id': 'trace-1', 'X-Trace-Branch': 'trace-1' },
    { 'X-Request-Id': 'trace-1', 'X-Trace-Branch': expect.stringMatching(/^trace-1\/\w+$/) },
  ]);
  await locks.close();
});
