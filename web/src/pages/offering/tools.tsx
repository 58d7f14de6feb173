import type { ReactNode } from 'react';
import { useTools, type Tool } from '../../api/catalogue.ts';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { Fold } from '../../ui/fold.tsx';
import { JsonView } from '../../ui/json-view.tsx';
import { Markdown } from '../../ui/markdown.tsx';
import { toolPrice } from '../../ui/price-words.ts';
import { QueryView } from '../../ui/query-view.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { fieldsOf } from './schema.ts';

/** The tools of a tool service, with their arguments and prices. */
export function Tools({ service }: { readonly service: string }): ReactNode {
  const query = useTools(service);
  const count = query.data?.length;
  return (
    <Card title={count === undefined ? 'Tools' : `Tools (${count})`} flush>
      <QueryView query={query} loading={<Skeleton className="m-5 h-24 w-auto" />}>
        {(tools) =>
          tools === null || tools.length === 0 ? (
            <Empty
              title="The tools are not known yet."
              text="The server has not said what it has. Try again in a moment."
            />
          ) : (
            <ul>
              {tools.map((tool) => (
                <li key={tool.name} className="border-t border-line px-4 py-4 first:border-t-0 sm:px-5">
                  <ToolEntry tool={tool} />
                </li>
              ))}
            </ul>
          )
        }
      </QueryView>
    </Card>
  );
}

function ToolEntry({ tool }: { readonly tool: Tool }): ReactNode {
  const { name, title, description, price, input_schema } = tool;
  const fields = fieldsOf(input_schema);
  return (
    <>
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <h3 className="min-w-0 break-words">
          <span className="font-mono text-sm font-semibold">{name}</span>
          {title !== null && title !== name && <span className="ml-2 font-normal text-soft">{title}</span>}
        </h3>
        <span className="figures text-sm font-semibold">{toolPrice(price)}</span>
      </div>
      <div className="mt-1 max-w-[75ch] text-soft">
        <Markdown text={description} />
      </div>
      {fields.length > 0 && (
        <dl className="mt-3 grid gap-x-4 gap-y-1.5 text-sm sm:grid-cols-[minmax(7rem,auto)_1fr]">
          {fields.map((field) => (
            <div key={field.name} className="sm:contents">
              <dt className="font-mono text-[13px] break-words">
                {field.name}
                {field.required && (
                  <abbr title="required" className="ml-0.5 text-bad no-underline">
                    *
                  </abbr>
                )}
              </dt>
              <dd className="min-w-0 break-words text-soft">
                <span className="text-ink">{field.type}</span>
                {field.description !== '' && ` · ${field.description}`}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {input_schema !== undefined && (
        <div className="mt-2">
          <Fold name="JSON Schema">
            <div className="overflow-x-auto rounded-lg border border-line bg-sunk p-3">
              <JsonView value={input_schema} />
            </div>
          </Fold>
        </div>
      )}
    </>
  );
}
