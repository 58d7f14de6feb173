import { request } from 'node:http';

/** An answer as a browser sees it. */
export interface Seen<T = SeenBody> {
  readonly status: number;
  readonly cookie: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: T;
}

/** Whatever is in an answer: tests say what they expect of it. */
export interface SeenBody {
  readonly error?: { readonly message: string; readonly type: string; readonly param: string | null };
  readonly data: Record<string, unknown> & { readonly hash: string };
  readonly key: string;
  readonly [other: string]: unknown;
}

/** A browser without pages: it keeps the cookies of one gateway and says what browsers say of themselves. */
export interface Browser {
  /** `name=value`; null without one. */
  cookie: string | null;
  /** A request of a page of the gateway. `headers` go beside and over the usual ones; undefined takes one away. */
  ask<T = SeenBody>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string | undefined>>,
  ): Promise<Seen<T>>;
}

/** A session's cookie as a browser sends it to a gateway over plain http. Default: a secret of no session. */
export const plainCookie = (origin: string, secret = 'A'.repeat(43), name = 'tollgate'): string =>
  `${name}-${new URL(origin).port}=${secret}`;

const PAGE = { 'sec-fetch-site': 'same-origin', 'x-tollgate-web': '1', 'user-agent': 'Browser of the tests' };

/** `host`: the name by which it calls the gateway. Default: that of the origin. */
export function openBrowser(origin: string, host = new URL(origin).host): Browser {
  const browser: Browser = {
    cookie: null,
    async ask(method, path, body, headers = {}) {
      const cookie = browser.cookie === null ? {} : { cookie: browser.cookie };
      const type = body === undefined ? {} : { 'content-type': 'application/json' };
      const seen = await send(origin + path, method, { ...PAGE, host, ...cookie, ...type, ...headers }, body);
      if (seen.cookie !== undefined) {
        const pair = seen.cookie.split(';')[0]!;
        browser.cookie = pair.endsWith('=') ? null : pair;
      }
      return seen as never;
    },
  };
  return browser;
}

function send(
  url: string,
  method: string,
  headers: Readonly<Record<string, string | undefined>>,
  body: unknown,
): Promise<Seen> {
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers: given }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const json = response.headers['content-type']?.includes('json') && text !== '';
        resolve({
          status: response.statusCode!,
          cookie: response.headers['set-cookie']?.[0],
          headers: response.headers,
          body: (json ? JSON.parse(text) : { text }) as SeenBody,
        });
      });
    });
    asked.on('error', reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
