import { useQuery } from '@tanstack/react-query';
import { Code } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import { api, data } from '../../../api/client.ts';
import { Button } from '../../../ui/button.tsx';
import { Empty } from '../../../ui/empty.tsx';
import { QueryView } from '../../../ui/query-view.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import { BarActions } from '../bar-actions.tsx';
import type { Service, ToolFacts } from '../catalogue.ts';
import { CodeDialog } from '../code/code-dialog.tsx';
import { codeOfTool } from '../code/code-of-tool.ts';
import { ToolForm } from './tool-form.tsx';
import { ToolList } from './tool-list.tsx';
import { ToolResult } from './tool-result.tsx';
import { useToolRun } from './use-tool-run.ts';

/** The panel of a tool service: its tools, a form for the arguments, and the answer. */
export default function ToolPanel({
  service,
  tool: asked,
  onTool,
}: {
  readonly service: Service;
  readonly tool: string;
  readonly onTool: (name: string) => void;
}): ReactNode {
  const tools = service.tools ?? [];
  const tool = tools.find(({ name }) => name === asked) ?? tools[0];
  return tool === undefined ? (
    <Empty
      heading="h2"
      title="This service lists no tools now."
      text="Its server may be starting. Its tools appear here when it answers."
    />
  ) : (
    <Workbench key={tool.name} service={service} tools={tools} tool={tool} onTool={onTool} />
  );
}

function Workbench({
  service,
  tools,
  tool,
  onTool,
}: {
  readonly service: Service;
  readonly tools: readonly ToolFacts[];
  readonly tool: ToolFacts;
  readonly onTool: (name: string) => void;
}): ReactNode {
  const schemas = useQuery({
    queryKey: ['playground', 'schemas', service.name],
    staleTime: 300_000,
    queryFn: () => data(api.GET('/api/v1/tools', { params: { query: { service: service.name, schemas: true } } })),
  });
  const [code, setCode] = useState(false);
  const { run, stop, shown } = useToolRun(`mcp/${service.name}/${tool.name}`);
  return (
    <div className="grid items-start gap-6 lg:grid-cols-[minmax(0,5fr)_minmax(0,6fr)]">
      <BarActions>
        <Button onClick={() => setCode(true)}>
          <Code size={15} aria-hidden /> <span className="max-sm:sr-only">Show code</span>
        </Button>
      </BarActions>
      <section aria-label="Tool" className="min-w-0 rounded-xl border border-line bg-card">
        <div className="border-b border-line p-4 sm:px-5">
          <ToolList tools={tools} chosen={tool} onChoose={onTool} />
        </div>
        <div className="p-4 sm:p-5">
          <h2 className="text-lg break-words">{tool.title}</h2>
          {tool.description !== '' && (
            <p className="mt-1 mb-5 whitespace-pre-wrap break-words text-soft">{tool.description.slice(0, 4_000)}</p>
          )}
          <QueryView query={schemas} loading={<Skeleton className="h-40 w-full" />}>
            {([listed]) => (
              <ToolForm
                price={tool.price}
                schema={listed?.tools?.find(({ name }) => name === tool.name)?.input_schema}
                busy={shown?.answer.running ?? false}
                onRun={run}
                onStop={stop}
              />
            )}
          </QueryView>
        </div>
      </section>
      <section aria-label="Result" className="min-w-0">
        <ToolResult shown={shown} />
      </section>
      <CodeDialog
        open={code}
        onClose={() => setCode(false)}
        samples={() => codeOfTool(service.name, tool.name, shown?.values ?? {})}
      />
    </div>
  );
}
