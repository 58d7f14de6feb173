import { otlpHeaderPairs, type Config } from '#config';

/** Names this process to a collector, with everything that it gets. */
export const otlpResource = (version: string | undefined): Readonly<Record<string, string>> => ({
  'service.name': 'tollgate',
  ...(version === undefined ? {} : { 'service.version': version }),
});

/** The address that a signal is posted to, and the headers of the collector. */
export interface OtlpReceiver {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function otlpReceiver(
  endpoint: string,
  headers: Config['otlpHeaders'],
  signal: 'traces' | 'logs',
): OtlpReceiver {
  const url = new URL(`${endpoint.replace(/\/+$/, '')}/v1/${signal}`);
  const { username, password } = url;
  // An address with a password is refused by fetch.
  [url.username, url.password] = ['', ''];
  const basic = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  return {
    url: url.href,
    headers: {
      ...(username === '' ? {} : { authorization: `Basic ${basic}` }),
      ...Object.fromEntries(otlpHeaderPairs(headers)),
    },
  };
}
