import type { ReactNode } from 'react';
import { useTools, type ServiceDetail } from '../../api/catalogue.ts';
import { BOOT } from '../../app/boot.ts';
import { CodeTabs } from '../../code/code-tabs.tsx';
import { Card } from '../../ui/card.tsx';
import { snippetsOf } from './code.ts';
import { exampleOf } from './schema.ts';

/** The service as code of each client, with the address that the reader uses. */
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

const FIRST_TOOL = { name: '<tool>', args: {} };

function Code({
  service,
  tool = FIRST_TOOL,
}: {
  readonly service: ServiceDetail;
  readonly tool?: { readonly name: string; readonly args: Readonly<Record<string, unknown>> };
}): ReactNode {
  const { primitive, name, durations, output_modalities } = service;
  const snippets = snippetsOf({
    kind: primitive,
    name,
    base: BOOT.base_url || location.origin,
    embeds: output_modalities.length > 0 && !output_modalities.includes('text'),
    tool,
    duration: durations[0] ?? '5s',
  });
  return (
    <Card title="Use it from code">
      <CodeTabs snippets={snippets} />
    </Card>
  );
}
