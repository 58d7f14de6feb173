import { expect, it, onTestFinished } from 'vitest';
import { callTool, modernPost, toolToml } from '../../mcp/calls/modern-post.ts';
import { startRawMcp, type RawAnswer } from '../../support/raw-mcp.ts';
import { startSpine } from '../../support/spine.ts';
import { attributesOf, logsOf, spansOf, startReceiver } from './otlp-receiver.ts';

const ENDINGS: Readonly<Record<string, RawAnswer>> = {
  forecast: '{"resultType":"complete","content":[]}',
  asks: '{"resultType":"input_required","inputRequests":{"who":{"method":"roots/list"}},"requestState":"s"}',
  fails: '{"resultType":"complete","isError":true,"content":[]}',
};
const LABELS = 'gen_ai_request_model="weather",gen_ai_provider_name="Tools"';
const CALL = `mcp_method_name="tools/call",gen_ai_operation_name="execute_tool",${LABELS}`;
/** Without the provider, which the time of a whole request does not have. */
const [ASKED, REQUEST] = [LABELS, CALL].map((labels) => labels.replace(/,gen_ai_provider_name=.*/, ''));

it('what a gateway does for a client of MCP is seen in its metrics, its log and its traces', async () => {
  const collector = await startReceiver();
  const server = await startRawMcp(({ method, params, idText }) => {
    if (method === 'tools/list') return '{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}';
    const error = `{"jsonrpc":"2.0","id":${idText},"error":{"code":-32602,"message":"Unknown tool"}}`;
    return (
      ENDINGS[String(params['name'])] ??
      ((response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(error))
    );
  });
  onTestFinished(() => server.close());
  const spine = await startSpine({
    toml: toolToml({ name: 'weather', url: server.url }),
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
      OTEL_LOGS_EXPORTER: 'otlp',
      TOLLGATE_LOG_LEVEL: 'debug',
    },
  });
  let running = true;
  onTestFinished(() => (running ? spine.stop() : undefined));

  await modernPost(spine, '/mcp/weather', 'tools/list');
  await modernPost(spine, '/mcp/weather', 'resources/read', { uri: 'demo://nowhere' });
  for (const tool of ['forecast', 'asks', 'fails', 'invented']) await callTool(spine, 'weather', tool);

  const text = await (
    await fetch(`${spine.origin}/metrics`, { headers: { authorization: `Bearer ${spine.adminKey}` } })
  ).text();
  const received = 'mcp_server_operation_duration_seconds_count';
  for (const line of [
    `${received}{mcp_method_name="tools/list",${ASKED}} 1`,
    `${received}{mcp_method_name="resources/read",${ASKED},error_type="-32602",rpc_response_status_code="-32602"} 1`,
    `${received}{${REQUEST},gen_ai_tool_name="forecast"} 1`,
    `${received}{${REQUEST},gen_ai_tool_name="asks"} 1`,
    `${received}{${REQUEST},gen_ai_tool_name="other",error_type="tool_error"} 1`,
    `${received}{${REQUEST},gen_ai_tool_name="other",error_type="-32602",rpc_response_status_code="-32602"} 1`,
    `mcp_client_operation_duration_seconds_count{${CALL}} 2`,
    `tollgate_charged_micro_usd_total{gen_ai_operation_name="execute_tool",${LABELS},gen_ai_tool_name="forecast"} 1000`,
    'tollgate_calls_total{lock="pending"} 1',
    'tollgate_calls_total{lock="settled"} 3',
    'tollgate_locks_held 1',
    'tollgate_log_lines_lost 0',
  ])
    expect(text.split('\n')).toContain(line);
  expect(text).not.toContain('invented');

  // The gateway lists what the server has for itself, too.
  const lines = spine.logs
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ account }) => account === spine.account);
  expect(
    lines
      .filter(({ msg }) => msg === 'free call')
      .map(({ method, provider, attempts }) => [method, provider, attempts]),
  ).toEqual([
    ['tools/list', 'Tools', 1],
    ['resources/read', 'Tools', 1],
  ]);
  expect(lines.filter(({ msg }) => msg === 'call').map(({ tool, error, lock }) => [tool, error, lock])).toEqual([
    ['forecast', null, 'settled'],
    ['asks', null, 'pending'],
    ['fails', 'tool_error', 'settled'],
    ['invented', '-32602', 'settled'],
  ]);

  const checks = (await spine.audit()).checks.filter(({ ok }) => !ok);
  await spine.stop();
  running = false;
  const spans = spansOf(collector.posts);
  // Each line of a call is found by its span.
  const told = logsOf(collector.posts).filter(({ body, spanId }) => body.stringValue?.endsWith('call') && spanId);
  expect(told.length).toBeGreaterThanOrEqual(6);
  const ids = new Set(spans.map(({ traceId, spanId }) => `${traceId} ${spanId}`));
  expect(told.filter(({ traceId, spanId }) => !ids.has(`${traceId} ${spanId}`))).toEqual([]);
  expect(spans.filter(({ kind }) => kind === 2).map(({ name }) => name)).toEqual([
    'tools/list',
    'resources/read',
    'tools/call forecast',
    'tools/call asks',
    'tools/call',
    'tools/call',
  ]);
  // The provider is told of the span on its side, and its server's spans go below that.
  const list = spans.find(({ kind, name }) => kind === 2 && name === 'tools/list')!;
  const ofProvider = spans.find(({ parentSpanId }) => parentSpanId === list.spanId)!;
  expect(ofProvider).toMatchObject({ kind: 3, name: 'tools/list' });
  expect(attributesOf(ofProvider)).toMatchObject({ 'mcp.method.name': 'tools/list', 'gen_ai.provider.name': 'Tools' });
  expect(server.asked.map(({ headers }) => headers['traceparent'])).toContain(
    `00-${ofProvider.traceId}-${ofProvider.spanId}-01`,
  );
  expect(checks).toEqual([]);
});
