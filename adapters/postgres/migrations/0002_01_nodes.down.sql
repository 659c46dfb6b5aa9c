-- Unmakes what the files of version 2 make.
DROP FUNCTION {schema}.step_expedite, {schema}.step_remove, {schema}.step_cancel, {schema}.step_exhume, {schema}.step_edit;
DROP FUNCTION {schema}.tidy, {schema}.forget, {schema}.recount;
DROP TYPE {schema}.step;
DROP TABLE {schema}.nodes;
