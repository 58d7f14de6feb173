/** Parses the chunks in the output of a stream reader, which has whole events of one line each. */
export function chunksOf(bytes: Uint8Array): Record<string, unknown>[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => JSON.parse(event.slice('data: '.length)) as Record<string, unknown>);
}
