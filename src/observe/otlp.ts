import { withoutCredentials } from '#wire';
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
  const { url, headers: credentials } = withoutCredentials(`${endpoint.replace(/\/+$/, '')}/v1/${signal}`);
  return { url, headers: { ...credentials, ...Object.fromEntries(otlpHeaderPairs(headers)) } };
}
