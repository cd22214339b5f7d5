-- What the example consumers keep beside their inbox: the latest state of each operation, and how many events it had.
create table if not exists operation_state (
    operation uuid primary key,
    source    text not null,
    state     text not null,
    version   bigint not null,
    events    bigint not null
);
