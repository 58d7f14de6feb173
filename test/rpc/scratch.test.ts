import { test } from 'vitest';
import { ask } from '../support/spine.ts';
import { useRpcWorld, request, TOOLS, AGENT, message } from './rpc-world.ts';
const w = useRpcWorld();
test('x', async () => {
  const show = (x: unknown) => console.log(JSON.stringify(x).slice(0, 900));
  for (const [m, p] of [['ping'],['models/list',{type:'all'}],['models/endpoints',{model:'test/model'}],['agents/list'],['agents/get',{agent:AGENT}],['providers/list'],['account/balance'],['account/credits'],['account/key'],
    ['chat/completions', ask('hello')],['chat/completions', ask('hello',{stream:true})],['chat/completions',{}],['tools/list'],['tools/list',{service:TOOLS}],['tools/call',{service:TOOLS,name:'test_simple_text',arguments:{}}],
    ['message/send',{agent:AGENT,message:message('echo hi')}],['tasks/get',{id:'nope'}],['tasks/list',{agent:AGENT}],['SendMessage',{message:{messageId:'m1',role:'ROLE_USER',parts:[{text:'task yo'}]}}],['message/stream'],['nope'],['generation/get',{id:'x'}],['rpc.discover']] as const) {
    const r = await w.post(request(1, m, p as never));
    console.log(m, r.status, r.headers.get('x-cost-usd'));
    show(await r.json());
  }
});
