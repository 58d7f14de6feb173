import { fetchText, isObject } from '#wire';

const ASK_MS = 5000;
const BYTES_MAX = 8 * 1024 * 1024;

interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON by POST. Default: GET. */
  readonly body?: object;
}

/** Asks a provider of this machine's user. Rejects with the reason why no answer came, in words for people. */
export async function askLocal(url: string, { headers = {}, body }: Asked = {}) {
  try {
    return await fetchText(url, {
      headers,
      ...(body === undefined ? {} : { body }),
      bytesMax: BYTES_MAX,
      signal: AbortSignal.timeout(ASK_MS),
    });
  } catch (error) {
    throw new Error(reasonOf(error), { cause: error });
  }
}

/** The cause of a failed fetch, whose own message is always "fetch failed". For several addresses it is only a code. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${ASK_MS / 1000} seconds`;
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  const code = 'code' in cause ? String(cause.code) : '';
  return cause.message || code || error.message;
}

/**
 * The objects of the list `list` in the answer. Rejects with a message for people, which names the address. `hint`: how
 * to say where the provider is.
 */
export async function listLocal(
  url: string,
  list: string,
  hint: string,
  asked: Asked = {},
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { host } = new URL(url);
  const { status, text } = await askLocal(url, asked).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`Its models could not be listed at ${url}: ${reason}. ${hint}`, { cause: error });
  });
  if (status < 200 || status > 299)
    throw new Error(
      `Its models could not be listed: ${host} answered ${status}${status === 401 ? ': the key is not accepted' : ''}`,
    );
  const items = parsed(text)?.[list];
  if (!Array.isArray(items)) throw new Error(`${host} did not answer with a list of models at ${url}. ${hint}`);
  return items.filter(isObject);
}

/** The object in a text; null for any other text. */
export function parsed(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
