import { onTestFinished } from 'vitest';
import { startRawMcp, type RawAnswer, type RawMcp, type Asked } from '../../../support/raw-mcp.ts';

/** A modern server with these tools, each by its input schema, stopped with the test. */
export async function startTools(
  tools: Readonly<
    Record<
      string,
      { readonly description?: string; readonly properties?: object; readonly required?: readonly string[] }
    >
  >,
  answer: (asked: Asked) => RawAnswer | Promise<RawAnswer>,
): Promise<RawMcp> {
  const listed = Object.entries(tools).map(([name, { description, properties = {}, required = [] }]) =>
    JSON.stringify({ name, description, inputSchema: { type: 'object', properties, required } }),
  );
  const server = await startRawMcp(answer, listed);
  onTestFinished(() => server.close());
  return server;
}

/** A result of these elements of content. */
export const result = (content: readonly object[], more: object = {}) =>
  JSON.stringify({ resultType: 'complete', content, ...more });

export const text = (said: string) => result([{ type: 'text', text: said }]);
