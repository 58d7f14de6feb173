import { describe, expect, it } from 'vitest';
import {
  createCallObserver,
  createMergedMetrics,
  createMetrics,
  linesLostSnapshot,
  type MetricSnapshot,
} from '#observe';
import type { McpCounts } from '../../../src/console/observe/mcp-metrics.ts';
import { answeredBy, exampleToolCall, exampleTools, settledBy } from './example-call.ts';

const SERVICE = 'gen_ai_request_model="demo/weather",gen_ai_provider_name="Demo"';
const CALL = `mcp_method_name="tools/call",gen_ai_operation_name="execute_tool",${SERVICE}`;
/** Without the provider, which the time of a whole request does not have. */
const [ASKED, REQUEST] = [SERVICE, CALL].map((labels) => labels.replace(/,gen_ai_provider_name=.*/, ''));

/**
 * A process that served these tools, and one tools/list. What it says of itself has gone through JSON, as between
 * processes.
 */
async function processThat(tools: readonly string[], open: McpCounts): Promise<readonly MetricSnapshot[]> {
  const metrics = createMetrics({ processMetrics: false });
  metrics.show({ mcp: () => open });
  const observer = createCallObserver([metrics.sink], { now: () => 1_500 });
  const offer = exampleTools();
  for (const [index, tool] of tools.entries()) {
    const call = exampleToolCall(offer, tool, { id: `gen-${index}` });
    observer.started(call);
    observer.attemptStarted(call, offer, 1_500);
    observer.resolved(call, settledBy(offer, { end: answeredBy(offer, 'complete') }));
  }
  const list = exampleToolCall(offer, null, { id: 'gen-list', free: 'tools/list' });
  observer.started(list);
  observer.failed(list, null, answeredBy(offer, null));
  metrics.mcpSessionEnded({ durationMs: 1_000, revision: '2025-06-18', error: null });
  return JSON.parse(JSON.stringify(await metrics.snapshot())) as readonly MetricSnapshot[];
}

describe('figures of MCP of several processes', () => {
  it('are added up by tool and method, and stay counted when a process is gone', async () => {
    const merged = createMergedMetrics();
    merged.take(1, await processThat(['forecast', 'forecast'], { sessions: 4, heldCalls: 1, listens: 2 }));
    merged.take(2, await processThat(['forecast', 'radar'], { sessions: 5, heldCalls: 0, listens: 3 }));
    const counted = [
      `mcp_server_operation_duration_seconds_count{${REQUEST},gen_ai_tool_name="forecast"} 3`,
      `mcp_server_operation_duration_seconds_count{${REQUEST},gen_ai_tool_name="radar"} 1`,
      `mcp_server_operation_duration_seconds_sum{${REQUEST},gen_ai_tool_name="forecast"} 1.5`,
      `mcp_server_operation_duration_seconds_count{mcp_method_name="tools/list",${ASKED}} 2`,
      `mcp_client_operation_duration_seconds_count{${CALL}} 4`,
      `tollgate_charged_micro_usd_total{gen_ai_operation_name="execute_tool",${SERVICE},gen_ai_tool_name="forecast"} 171`,
      `tollgate_charged_micro_usd_total{gen_ai_operation_name="execute_tool",${SERVICE},gen_ai_tool_name="radar"} 57`,
      'mcp_server_session_duration_seconds_count{mcp_protocol_version="2025-06-18"} 2',
    ];
    merged.take(0, await linesLostSnapshot(() => 3));
    const open = [
      'tollgate_log_lines_lost 3',
      'tollgate_mcp_sessions 9',
      'tollgate_mcp_held_calls 1',
      'tollgate_mcp_listens 5',
    ];
    expect((await merged.text()).split('\n')).toEqual(expect.arrayContaining([...counted, ...open]));

    merged.retire(2);
    const left = ['tollgate_mcp_sessions 4', 'tollgate_mcp_held_calls 1', 'tollgate_mcp_listens 2'];
    expect((await merged.text()).split('\n')).toEqual(expect.arrayContaining([...counted, ...left]));
  });
});
