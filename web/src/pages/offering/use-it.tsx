import type { ReactNode } from 'react';
import { useTools, type ServiceDetail } from '../../api/catalogue.ts';
import { BOOT } from '../../app/boot.ts';
import { CodeTabs } from '../../code/code-tabs.tsx';
import { Card } from '../../ui/card.tsx';
import { calledOf, FIRST_TOOL, snippetsOf } from './code.ts';
import './first-paint.ts';
import { exampleOf } from './schema.ts';

/** Code that calls the service, for each client. It uses the address that the reader uses. */
export function UseIt({ service }: { readonly service: ServiceDetail }): ReactNode {
  return service.primitive === 'tool' ? <WithTool service={service} /> : <Code service={service} />;
}

function WithTool({ service }: { readonly service: ServiceDetail }): ReactNode {
  const { data } = useTools(service.name);
  const first = data?.[0];
  return (
    <Code service={service} tool={first ? { name: first.name, args: exampleOf(first.input_schema) } : FIRST_TOOL} />
  );
}

function Code({
  service,
  tool = FIRST_TOOL,
}: {
  readonly service: ServiceDetail;
  readonly tool?: typeof FIRST_TOOL;
}): ReactNode {
  return (
    <Card title="Use it from code">
      <CodeTabs snippets={snippetsOf(calledOf(service, BOOT.base_url, tool))} />
    </Card>
  );
}
