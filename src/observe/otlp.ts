import { otlpHeaderPairs, type Config } from '#config';

/** The attributes that identify this process to a collector. They go with everything that is sent. */
export const otlpResource = (version: string | undefined): Readonly<Record<string, string>> => ({
  'service.name': 'tollgate',
  ...(version === undefined ? {} : { 'service.version': version }),
});

/** The URL to which a signal is posted, and the headers for the collector. */
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
  // fetch refuses a URL with a password, so it is sent as a header.
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
