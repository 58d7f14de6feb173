import type { ServerResponse } from 'node:http';
import type { Dispatcher, Pool } from 'undici';

const HEADERS = { 'content-type': 'application/json' };

/** Sends a body to the upstream and writes the reply's bytes as they arrive, with backpressure in both directions. */
export function forward(
  pool: Pool,
  path: string,
  body: Buffer,
  response: ServerResponse,
  headers: Readonly<Record<string, string>> = HEADERS,
): void {
  let upstream: Dispatcher.DispatchController | undefined;
  response.on('close', () => {
    if (!response.writableFinished) upstream?.abort(new Error('client gone'));
  });
  pool.dispatch(
    { path, method: 'POST', headers, body },
    {
      onRequestStart(controller) {
        upstream = controller;
      },
      onResponseStart(_controller, status, headers) {
        const passed: Record<string, string | string[]> = {
          'content-type': headers['content-type'] ?? 'application/json',
        };
        if (headers['content-length']) passed['content-length'] = headers['content-length'];
        response.writeHead(status, passed);
        response.flushHeaders();
      },
      onResponseData(controller, chunk) {
        if (response.write(chunk)) return;
        controller.pause();
        response.once('drain', () => controller.resume());
      },
      onResponseEnd() {
        response.end();
      },
      onResponseError(_controller, error) {
        if (!response.headersSent) response.writeHead(502);
        response.end(String(error));
      },
    },
  );
}
