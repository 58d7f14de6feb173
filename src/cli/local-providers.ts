import type { ServiceConfig } from '#config';
import { ollamaServices } from './ollama-services.ts';
import { openaiServices } from './openai-services.ts';

/** A provider that this machine can reach, and to which the development gateway could route. */
export interface LocalProvider {
  readonly name: 'Ollama' | 'OpenAI';
  /** Its name and place, as words for the question. */
  readonly found: string;
  /** The flag that routes to it without asking. */
  readonly flag: '--with-ollama' | '--with-openai';
  /** Asks the provider for its models. Rejects with a message for people. */
  services(): Promise<readonly ServiceConfig[]>;
}

const PROBE_MS = 3_000;
const TICK_MS = 50;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Finds providers that answer, or whose key is in the environment. Never rejects. Takes at most three seconds of an
 * idle process, while the demo starts. Usually nothing listens there, which is known at once.
 */
export async function findLocalProviders(env: Environment): Promise<readonly LocalProvider[]> {
  const found: LocalProvider[] = [];
  const ollama = ollamaAddress(env['OLLAMA_HOST']);
  if (ollama && (await answers(`${ollama}/api/tags`))) {
    found.push({
      name: 'Ollama',
      found: `Ollama answers on ${new URL(ollama).host}`,
      flag: '--with-ollama',
      services: () => ollamaServices(ollama),
    });
  }
  const key = env['OPENAI_API_KEY'];
  const base = (env['OPENAI_BASE_URL'] || 'https://api.openai.com/v1').replace(/\/+$/, '');
  // The key of a tollgate belongs to this gateway or to another one. Routing to it would send calls in a circle.
  if (key && !key.startsWith('svc-sk-')) {
    found.push({
      name: 'OpenAI',
      found: 'OPENAI_API_KEY is set',
      flag: '--with-openai',
      services: () => openaiServices(base, key),
    });
  }
  return found;
}

/**
 * The address in OLLAMA_HOST, read as Ollama does: host, host:port or URL. A listening address means this machine. Null
 * if it cannot be parsed.
 */
function ollamaAddress(host: string | undefined): string | null {
  const text = host?.trim() || '127.0.0.1:11434';
  const url = text.includes('://') ? text : `http://${text}`;
  if (!URL.canParse(url)) return null;
  const { protocol, hostname, port } = new URL(url);
  if (!hostname || !/^https?:$/.test(protocol)) return null;
  const local = hostname === '0.0.0.0' ? '127.0.0.1' : hostname === '[::]' ? '[::1]' : hostname;
  return `${protocol}//${local}:${port || (text.includes('://') ? (protocol === 'https:' ? '443' : '80') : '11434')}`;
}

async function answers(url: string): Promise<boolean> {
  const probe = new AbortController();
  let left = PROBE_MS;
  // The start loads modules meanwhile, which keeps the event loop busy. At most one tick passes in each turn of the
  // loop. So an answer that came in a long turn is read before the time is over.
  const timer = setInterval(() => {
    left -= TICK_MS;
    if (left <= 0) probe.abort();
  }, TICK_MS);
  try {
    const response = await fetch(url, { signal: probe.signal, redirect: 'error' });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  } finally {
    clearInterval(timer);
  }
}
