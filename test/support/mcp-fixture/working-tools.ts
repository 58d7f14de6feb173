import { setTimeout as pause } from 'node:timers/promises';
import { fromJsonSchema, type McpServer, type ServerContext } from '@modelcontextprotocol/server';
import { FIXED_RESULTS, says } from './content.ts';

/** Sends list-changed notifications to all clients, although the fixture's lists never change. */
export interface Announcer {
  toolsChanged(): void;
  promptsChanged(): void;
  resourcesChanged(): void;
  resourceUpdated(uri: string): void;
}

/**
 * Pause between two messages of one call. It is long enough to reveal a client that starts to collect them too late.
 */
const STEP_MS = 20;

/**
 * Every hop must keep this schema unchanged. It is JSON Schema 2020-12 with the keywords that are most often removed.
 */
const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object' as const,
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // oxlint-disable-next-line unicorn/no-thenable -- A keyword of JSON Schema.
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

const HEADER_SCHEMA = {
  type: 'object' as const,
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    priority: { type: 'integer', 'x-mcp-header': 'Priority' },
    query: { type: 'string' },
  },
  required: ['region'],
};

/** Tools that don't ask anything: fixed content, errors, progress, logs, a cut stream, announced changes. */
export function addWorkingTools(server: McpServer, announce: Announcer): void {
  for (const [name, result] of Object.entries(FIXED_RESULTS))
    server.registerTool(name, { description: 'Answers with fixed content' }, () => result);

  server.registerTool('test_error_handling', { description: 'Always fails' }, () => {
    throw new Error('This tool intentionally returns an error for testing');
  });

  server.registerTool('test_tool_with_logging', { description: 'Writes three log messages' }, async (context) => {
    for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await log(context, message);
      await pause(STEP_MS);
    }
    return says('Logged three messages');
  });

  server.registerTool('test_logging_tool', { description: 'Writes one log message' }, async (context) => {
    await log(context, 'Only clients that asked for logs see this');
    return says('Logged one message');
  });

  server.registerTool('test_tool_with_progress', { description: 'Reports its progress' }, async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      await pause(STEP_MS);
    }
    return says('Done');
  });

  server.registerTool('test_reconnection', { description: 'Closes its stream before it answers' }, async ({ http }) => {
    http?.closeSSE?.();
    await pause(STEP_MS);
    return says('The answer came over a second stream');
  });

  server.registerTool(
    'json_schema_2020_12_tool',
    { description: 'Has a rich schema', inputSchema: fromJsonSchema(SCHEMA_2020_12) },
    (input) => says(JSON.stringify(input)),
  );

  server.registerTool(
    'test_custom_header',
    { description: 'Has arguments that travel as headers too', inputSchema: fromJsonSchema(HEADER_SCHEMA) },
    (input) => says(JSON.stringify(input)),
  );

  const announcing = (name: string, run: () => void) =>
    server.registerTool(name, { description: 'Announces a change' }, () => {
      run();
      return says('Announced');
    });
  announcing('test_trigger_tool_change', announce.toolsChanged);
  announcing('test_trigger_prompt_change', announce.promptsChanged);
  announcing('test_trigger_resource_change', announce.resourcesChanged);
  announcing('test_trigger_resource_update', () => announce.resourceUpdated('test://watched-resource'));
}

async function log({ mcpReq }: ServerContext, message: string): Promise<void> {
  await mcpReq.log('info', message);
}
