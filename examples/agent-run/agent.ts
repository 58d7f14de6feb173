/**
 * An A2A agent that works with what it is given: a question comes as a task, a model writes the answer, a tool says
 * how long it takes to read aloud. It has no keys of its own. Whoever called it through tollgate pays for the model
 * and the tool as well, up to the budget that was locked for the task.
 *
 * Copy it, put your own work into `work()`, and offer it with an [[agents]] block that has `nested_max` in its pricing.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TaskState, type AgentCard, type Part } from '@a2a-js/sdk';
import {
  AgentEvent,
  DefaultRequestHandler,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  ServerCallContext,
  type AgentExecutor,
  type RequestContext,
} from '@a2a-js/sdk/server';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import OpenAI from 'openai';

/**
 * What the gateway puts into `metadata["tollgate/run"]` of a message: a key for this one task, where it is good,
 * and how many USD it may spend.
 */
interface Run {
  readonly token: string;
  readonly url: string;
  readonly budget_usd: string;
}

/**
 * The gateway alone writes this: what a client puts there itself is taken out on the way. An agent that can also be
 * reached past its gateway should compare `url` with the address that it knows, or anybody could have it send its
 * work elsewhere.
 */
function runOf({ userMessage }: RequestContext): Run | null {
  const run = userMessage.metadata?.['tollgate/run'] as Run | undefined;
  return run?.token && run.url ? run : null;
}

/** The work itself. `say` tells the client what is being done. */
async function work(question: string, run: Run, say: (words: string) => void): Promise<Part[]> {
  // Any client for the OpenAI API will do: the run token takes the place of an API key.
  say('A model writes the answer.');
  const openai = new OpenAI({ apiKey: run.token, baseURL: run.url });
  const completion = await openai.chat.completions.create({
    model: 'demo/chat',
    messages: [{ role: 'user', content: question }],
    // What is locked for a call counts against the budget while it runs, so a call should not ask for more than it
    // needs.
    max_completion_tokens: 200,
  });
  const speech = completion.choices[0]?.message.content ?? '';

  // The same goes for any MCP client.
  say('A tool weighs it.');
  const mcp = new Client({ name: 'speechwriter', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
  const requestInit = { headers: { authorization: `Bearer ${run.token}` } };
  await mcp.connect(new StreamableHTTPClientTransport(new URL(`${run.url}/mcp/demo/tools`), { requestInit }));
  try {
    const weighed = await mcp.callTool({ name: 'weigh_words', arguments: { text: speech } });
    if (weighed.isError) throw new Error('the tool failed');
    return [textPart(speech), dataPart(weighed.structuredContent)];
  } finally {
    await mcp.close();
  }
}

const textPart = (value: string): Part => ({
  content: { $case: 'text', value },
  metadata: undefined,
  filename: '',
  mediaType: 'text/plain',
});
const dataPart = (value: unknown): Part => ({
  content: { $case: 'data', value },
  metadata: undefined,
  filename: '',
  mediaType: 'application/json',
});

const executor: AgentExecutor = {
  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    const tell = (state: TaskState, words?: string) => {
      const message =
        words === undefined
          ? undefined
          : {
              ...userMessage,
              messageId: crypto.randomUUID(),
              taskId,
              contextId,
              role: 2,
              parts: [textPart(words)],
              metadata: undefined,
            };
      const status = { state, message, timestamp: new Date().toISOString() };
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata: undefined }));
    };

    // The first thing that an agent says is the task: from then on the gateway watches it, whoever leaves.
    const status = { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() };
    bus.publish(
      AgentEvent.task({ id: taskId, contextId, status, artifacts: [], history: [userMessage], metadata: undefined }),
    );

    const question = userMessage.parts
      .map(({ content }) => (content?.$case === 'text' ? content.value : ''))
      .join('\n');
    const run = runOf(context);
    // A task that is rejected, or fails, is free for whoever sent it.
    if (run === null)
      return tell(
        TaskState.TASK_STATE_REJECTED,
        'I work with the budget of whoever calls me: send this through tollgate, with a max_cost.',
      );
    try {
      const parts = await work(question, run, (words) => tell(TaskState.TASK_STATE_WORKING, words));
      const artifact = {
        artifactId: 'speech',
        name: 'speech',
        description: '',
        parts,
        metadata: undefined,
        extensions: [],
      };
      bus.publish(
        AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true, metadata: undefined }),
      );
      tell(TaskState.TASK_STATE_COMPLETED);
    } catch (error) {
      // Here too when the budget is used up: the gateway refuses the call with 402 and says what is left. What was
      // called already has to be paid.
      tell(TaskState.TASK_STATE_FAILED, error instanceof Error ? error.message : String(error));
    }
  },

  // The work is short: it is not called off.
  async cancelTask() {},
};

const cardOf = (url: string): AgentCard => ({
  name: 'Speechwriter',
  description: 'Answers a question in words that can be read aloud, and says how long that takes.',
  version: '1.0.0',
  // The gateway speaks 0.3 and HTTP+JSON for it, and writes its own address here.
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
  provider: undefined,
  capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain', 'application/json'],
  skills: [
    {
      id: 'speech',
      name: 'Speech',
      description: 'A question comes, a speech goes.',
      tags: ['text'],
      examples: ['What is a tollgate?'],
      inputModes: [],
      outputModes: [],
      securityRequirements: [],
    },
  ],
  signatures: [],
});

export interface Agent {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves the agent on a port of this machine, 0 for any that is free. Resolves when it listens. */
export async function startAgent(port = 0): Promise<Agent> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const card = cardOf(url);
  const rpc = new JsonRpcTransportHandler(new DefaultRequestHandler(card, new InMemoryTaskStore(), executor));

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const json = (body: unknown) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (request.method === 'GET' && request.url === '/.well-known/agent-card.json') return json(card);
    if (request.method !== 'POST') return void response.writeHead(404).end();
    const body = Buffer.concat((await request.toArray()) as Buffer[]).toString();
    const reply = await rpc.handle(
      body,
      new ServerCallContext({ requestedVersion: String(request.headers['a2a-version'] ?? '1.0') }),
    );
    if (!(Symbol.asyncIterator in reply)) return json(reply);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for await (const event of reply) response.write(`data: ${JSON.stringify(event)}\n\n`);
    response.end();
  };
  server.on('request', (request, response) => {
    answer(request, response).catch((error: unknown) => {
      console.error(error);
      response.destroy();
    });
  });
  return {
    url,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

if (import.meta.main) console.log(`The agent listens at ${(await startAgent(4020)).url}`);
