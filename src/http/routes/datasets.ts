import { DatasetListing } from "../../protocol/type.ts";
import { type Route, route } from "../route.ts";

/** All datasets, with the JSON Schema of their records. */
export const datasetRoutes: Route[] = [
  route({
    method: "GET",
    path: "/v1/spaces/:spaceId/datasets",
    id: "listSpaceDatasets",
    tag: "Spaces",
    summary: "Datasets of a space",
    description:
      "Built in and declared. Schemas say per field `x-scope`, `x-mutable-by` (absent: write-once) and `x-stamp`, and " +
      "per dataset `x-delete-by`, `x-id`, `x-id-pattern`, `x-id-max-length` and `x-search`.",
    responses: { 200: { description: "The datasets", schema: DatasetListing } },
    handler: async ({ engine, params }) => {
      const { datasets } = await engine.space(params.spaceId);
      return { datasets: datasets.listing() };
    },
  }),
  route({
    method: "GET",
    path: "/v1/datasets",
    id: "listAccountDatasets",
    tag: "Spaces",
    summary: "Datasets of the account's own space",
    responses: { 200: { description: "The datasets", schema: DatasetListing } },
    handler: async ({ engine }) => {
      const datasets = [...engine.techDatasets];
      return { datasets };
    },
  }),
];
