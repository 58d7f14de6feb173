/** The end of a page of the aggregate. The next page begins after it, even if the lists have changed. */
export interface Position {
  readonly slug: string;
  /** Exposed name or URI of the last element. */
  readonly key: string;
}

/** The gateway never issues longer cursors. */
const TEXT_MAX = 16_384;
const BASE64URL = /^[A-Za-z0-9_-]+$/;

export function toCursor({ slug, key }: Position): string {
  return Buffer.from(JSON.stringify([slug, key])).toString('base64url');
}

/** null if the text is not a cursor of the aggregate. */
export function fromCursor(text: string): Position | null {
  if (text.length > TEXT_MAX || !BASE64URL.test(text)) return null;
  try {
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (!Array.isArray(value) || value.length !== 2) return null;
    const [slug, key] = value as readonly unknown[];
    return typeof slug === 'string' && typeof key === 'string' ? { slug, key } : null;
  } catch {
    return null;
  }
}
