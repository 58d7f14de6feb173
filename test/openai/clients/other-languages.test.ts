import { describe, expect, test } from 'vitest';
import { startMcpFixture } from '../../support/mcp-fixture.ts';
import { startScriptedUpstream } from '../../support/scripted-upstream.ts';
import { modelBlock, startSpine, UNHURRIED } from '../../support/spine.ts';
import { LANGUAGES, said } from './support/languages.ts';
import { spineOfFile } from '../../support/of-file.ts';

// Clients in other languages as they are at their registries, unchanged, with nothing but the address and the key. A
// language that this machine does not have is named, and its programs are left out.

const BUILD_MS = 1_800_000;
const here = (names: readonly string[]) =>
  names.filter((name) => {
    const { missing } = LANGUAGES[name]!();
    if (missing !== null) process.stderr.write(`  ${name} is left out: ${missing}\n`);
    return missing === null;
  });

const spine = spineOfFile(() => ({ toml: UNHURRIED }));

test('every language has its programs', () => {
  expect(Object.keys(LANGUAGES)).toEqual(['python', 'go', 'rust', 'java']);
});

/** Clients that read OpenAI's API strictly. Each does the same, and prints what it saw. */
const STRICT = { go: 'go-openai', rust: 'async-openai', java: 'openai-java' } as const;

describe.each(here(Object.keys(STRICT)))('%s', (language) => {
  test(
    'chats, streams to the usage, sees a stream that breaks, and reads the code of an error',
    async () => {
      const program = await LANGUAGES[language]!().build(STRICT[language as keyof typeof STRICT]);
      expect(await said(program, { BASE_URL: `${spine.origin}/v1`, KEY: spine.key })).toEqual({
        whole: 'the toll is paid ',
        streamed: 'the toll is paid ',
        finish: 'stop',
        completionTokens: 4,
        broken: true,
        code: 'invalid_model',
        status: 404,
      });
    },
    BUILD_MS,
  );
});

/** Google's SDKs. */
const OF_GOOGLE = { python: 'google_genai.py', go: 'go-genai' } as const;

describe.each(here(Object.keys(OF_GOOGLE)))("%s: Google's SDK", (language) => {
  test(
    'answers, streams to the usage, also after silence, and reads the status of an error',
    async () => {
      const program = await LANGUAGES[language]!().build(OF_GOOGLE[language as keyof typeof OF_GOOGLE]);
      const own = await startSpine({ toml: UNHURRIED, keepAliveMs: 50 });
      try {
        expect(await said(program, { BASE_URL: `${own.origin}/api`, KEY: own.key })).toEqual({
          whole: 'the toll is paid ',
          streamed: 'the toll is paid ',
          afterSilence: 'the toll is paid ',
          finish: 'STOP',
          completionTokens: 4,
          isApiError: true,
          code: 'NOT_FOUND',
          status: 404,
        });
        expect(await own.faults()).toEqual([]);
      } finally {
        await own.stop();
      }
    },
    BUILD_MS,
  );
});

describe.each(here(['python']))('%s', (language) => {
  test.each([
    ['openai_agents.py', 3],
    ['agent_framework_agent.py', 2],
  ])(
    '%s calls a tool of the gateway in each turn of a conversation',
    async (file, turns) => {
      const program = await LANGUAGES[language]!().build(file);
      const fixture = await startMcpFixture();
      const model = await startScriptedUpstream(({ messages, tools }) => {
        const { role, content } = (messages as { role: string; content: unknown }[]).at(-1)!;
        const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
        if (role === 'tool') return { words: [`The tool said: ${JSON.stringify(content)}`], usage };
        const names = ((tools ?? []) as { function: { name: string } }[]).map((tool) => tool.function.name);
        const name = names.find((one) => one.endsWith('test_simple_text'));
        const call = { index: 0, id: 'call_1', type: 'function', function: { name, arguments: '{}' } };
        return { words: [], usage, message: { content: null, tool_calls: [call] } };
      });
      const plays = modelBlock({ name: 'test/plays', provider: 'Plays', url: model.url });
      const tools = `
[[tools]]
name = "test/tools"
display_name = "Tools"
provider_name = "Tools"
endpoint = "${fixture.url}"
[tools.pricing]
per_call = 0.001
`;
      const own = await startSpine({ toml: UNHURRIED + plays + tools });
      try {
        const settings = { BASE_URL: own.url, KEY: own.key, MCP_URL: `${own.origin}/mcp/test/tools` };
        const { answers } = (await said(program, settings)) as { answers: readonly string[] };
        expect(answers).toHaveLength(turns);
        for (const answer of answers) expect(answer).toContain('This is a simple text response for testing.');
        expect(await own.faults()).toEqual([]);
      } finally {
        await own.stop();
        await fixture.close();
      }
    },
    BUILD_MS,
  );
});
