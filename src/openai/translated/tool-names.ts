import { hash } from 'node:crypto';

const NAME_MAX = 64;
const DIGEST_CHARS = 8;

/** Translates names of tools to names that a chat model takes, and back. */
export class ToolNames {
  #longs: Map<string, string> | null = null;

  /** The name for the model: a long one is shortened and gets a digest. */
  short(name: string): string {
    if (name.length <= NAME_MAX) return name;
    const digest = hash('sha256', name).slice(0, DIGEST_CHARS);
    const short = `${name.slice(0, NAME_MAX - DIGEST_CHARS - 1)}_${digest}`;
    (this.#longs ??= new Map()).set(short, name);
    return short;
  }

  long(name: string): string {
    return this.#longs?.get(name) ?? name;
  }
}
