import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { finished, PassThrough, Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Call } from '../../support/http/frameworks.ts';
import type { RawClient } from '../../support/http/raw-client.ts';

/** The size of a body of which a client sends one half. */
export const bodyBytes = 100;
export const half: string = 'x'.repeat(bodyBytes / 2);

/** Ways to deal with a body, most of which leave it before its end. After many of them `req.socket` is null. */
export const readers: Readonly<Record<string, (req: IncomingMessage) => unknown>> = {
  'does not read it': () => undefined,
  'lets it flow': (req) => req.resume(),
  'reads one chunk': (req) => once(req, 'data'),
  'pauses it': (req) => once(req, 'data').then(() => req.pause()),
  'leaves its loop': async (req) => {
    for await (const _ of req) break;
  },
  'throws in its loop': async (req) => {
    for await (const _ of req) throw new Error('too large');
  },
  'leaves its loop, and keeps the stream': async (req) => {
    for await (const _ of req.iterator({ destroyOnReturn: false })) break;
  },
  'reads it to its end': (req) => req.toArray(),
  'takes one chunk': (req) => req.take(1).toArray(),
  'drops and takes': (req) => req.drop(1).take(1).toArray(),
  'maps it to a failure': (req) => req.map(() => Promise.reject(new Error('in map'))).toArray(),
  'finds something': (req) => req.find(() => true),
  'has a pipeline into a full disk': (req) => pipeline(req, fullDisk()),
  'has a pipeline through a broken parser': (req) => pipeline(req, broken(), new PassThrough().resume()),
  'has a pipeline that is aborted': (req) => {
    const controller = new AbortController();
    setImmediate(() => controller.abort());
    return pipeline(req, new PassThrough().resume(), { signal: controller.signal });
  },
  'has a pipeline into a function that returns': (req) =>
    pipeline(req, async (source) => {
      for await (const _ of source) return;
    }),
  'pipes and unpipes it': (req) => {
    const sink = new PassThrough().resume();
    req.pipe(sink);
    return once(sink, 'data').then(() => req.unpipe(sink).destroyed);
  },
  'composes it with a broken parser': (req) => req.compose(broken()).resume().on('error', ignore),
  'cancels a web stream of it': async (req) => {
    const reader = Readable.toWeb(req).getReader();
    await reader.read();
    await reader.cancel();
  },
  'pipes a web stream of it into a failure': (req) =>
    Readable.toWeb(req).pipeTo(
      new WritableStream({
        write() {
          throw new Error('in the sink');
        },
      }),
    ),
  'sends it on to a server that refuses it': (req) =>
    fetch('http://127.0.0.1:1/', { method: 'POST', body: req, duplex: 'half' } as RequestInit),
  'waits for its end': (req) => new Promise((resolve) => finished(req.resume(), resolve)),
};

/** What an act may need. */
export interface Stage {
  readonly server: Server;
  readonly client: RawClient;
  readonly call: Call;
  /** The connection, which the request may have lost. */
  readonly socket: Socket;
}

/** What clients and other code of the server do to a request while its handler works. None of it ends the handler's work. */
export const others: Readonly<Record<string, (stage: Stage) => unknown>> = {
  nothing: () => undefined,
  'the client resets': ({ client }) => client.hangUp('RST'),
  'the client ends': ({ client }) => client.halfClose(),
  'the client is gone': ({ client }) => client.destroy(),
  'the client sends garbage': ({ client }) => client.socket.write(`${half}\0garbage\r\n\r\n`),
  'the client sends the rest, and another request': ({ client }) =>
    client.socket.write(`${half}GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n`),
  'the client sends the rest, and is gone': ({ client }) => client.socket.write(half, () => client.destroy()),
  'the server closes all connections': ({ server }) => server.closeAllConnections(),
  'other code destroys the socket': ({ socket }) => socket.destroy(),
  'other code destroys the socket with an error': ({ socket }) => socket.destroy(new Error('too old')),
  'other code resets the socket': ({ socket }) => socket.resetAndDestroy(),
  'other code ends the socket': ({ socket }) => socket.end(),
  'other code ends the socket soon': ({ socket }) => socket.destroySoon(),
  'other code destroys the request': ({ call }) => call.req.destroy(),
  'other code destroys the request with an error': ({ call }) =>
    call.req.on('error', ignore).destroy(new Error('kicked')),
  'other code destroys the response': ({ call }) => call.res.destroy(),
  'the socket has timed out': ({ socket }) => socket.setTimeout(1),
};

/** What the handler itself does to its request. It ends its work, also if the handler goes on. */
export const own: Readonly<Record<string, (stage: Stage) => unknown>> = {
  'it destroys the socket': ({ socket }) => socket.destroy(),
  'it destroys the response': ({ call }) => call.res.destroy(),
  'it destroys the response with an error': ({ call }) => call.res.on('error', ignore).destroy(new Error('given up')),
  'it destroys the socket, and then the response': ({ call, socket }) => {
    socket.destroy();
    call.res.destroy();
  },
};

function fullDisk(): Writable {
  return new Writable({ write: (_chunk, _encoding, done) => done(new Error('ENOSPC')) });
}

function broken(): PassThrough {
  return new PassThrough({ transform: (_chunk, _encoding, done) => done(new Error('in the parser')) });
}

function ignore(): void {}
